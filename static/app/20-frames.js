// Applying a frame.
// The reader's hands come first: a field in use keeps what was typed, selected text stays.
const held = new Map();  // texts that wait until nothing of theirs is selected
let isBehind = false;    // a piece of markup could not be changed under the focus

function isChosenIn(element) {
  const choice = getSelection();
  return choice && !choice.isCollapsed && !document.activeElement.matches('input, textarea') &&
    (element.contains(choice.anchorNode) || element.contains(choice.focusNode));
}
function setText(id, text) {
  const element = byId(id);
  if (!element || element.textContent === text) return held.delete(id);
  if (isChosenIn(element)) return held.set(id, text);
  held.delete(id);
  const only = element.childNodes.length === 1 && element.firstChild;
  if (only && only.nodeType === Node.TEXT_NODE) only.nodeValue = text;
  else element.textContent = text;
}
function setAttribute(id, name, value) {
  const element = byId(id);
  if (!element || (name === 'hidden' && element.matches('#rows > tr'))) return;
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  if (name !== 'value' || !(element instanceof HTMLInputElement)) return;
  if (element.form && !isWaiting(element.form)) stepOf(element.form).asked = undefined;
  if (!inUse(element)) element.value = value ?? '';
}
// Without htmx: replace the element, or, where the reader is inside, all around the way to him.
function graft(old, fresh) {
  const hand = old.contains(document.activeElement) ? document.activeElement : find('form.wait', old);
  if (old.isEqualNode(fresh)) return;
  if (!hand) return old.replaceWith(fresh);
  for (const { name } of [...old.attributes]) if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
  if (hand === old) return;
  const kept = [...old.children].find(child => child.contains(hand));
  const twin = [...fresh.children].find(child => kept.id ? child.id === kept.id
    : !child.id && child.tagName === kept.tagName && child.className === kept.className);
  if (!twin) { isBehind = true; return; }
  while (kept.previousSibling) kept.previousSibling.remove();
  while (kept.nextSibling) kept.nextSibling.remove();
  while (twin.previousSibling) old.prepend(twin.previousSibling);
  while (twin.nextSibling) old.append(twin.nextSibling);
  graft(kept, twin);
}
// The pieces of a frame that may be changed now. In an unknown element the parser would throw rows
// and cells away: it must be a template first.
function partsOf(html) {
  const whole = document.createElement('template');
  whole.innerHTML = html.replace(/<(\/?)hx-partial/g, '<$1template');
  return all('template[hx-target]', whole.content).filter(part => {
    const old = find(part.getAttribute('hx-target'));
    if (old && isChosenIn(old)) isBehind = true;
    else if (old) keepOrder(part.content);
    return old && !isChosenIn(old);
  });
}
function setMarkup(html) {
  const typed = halfTyped(), opened = all('details.more[open]').map(panel => panel.id), parts = partsOf(html);
  if (window.htmx) {
    const text = parts.map(part => part.outerHTML.replace(/^<template/, '<hx-partial').replace(/template>$/, 'hx-partial>')).join('');
    if (!text) return;
    return htmx.swap({ text, target: body, swap: 'none', sourceElement: body })
      .catch(() => { isBehind = true; }).then(() => { typeAgain(typed); showFilter(); });
  }
  for (const part of parts) {
    const old = find(part.getAttribute('hx-target')), fresh = part.content.firstElementChild;
    if (old && fresh) graft(old, fresh);
  }
  for (const id of opened) if (byId(id)) byId(id).open = true;
  typeAgain(typed);
}
function apply(frame) {
  if (frame.html) setMarkup(frame.html);
  for (const [id, pairs] of Object.entries(frame.attrs || {}))
    for (const [name, value] of Object.entries(pairs)) setAttribute(id, name, value);
  for (const [id, d] of Object.entries(frame.paths || {})) setAttribute(id, 'd', d);
  for (const [id, text] of [...held, ...Object.entries(frame.texts || {})]) setText(id, text);
  readChart();
  if (frame.structure) body.dataset.structure = isBehind ? '' : frame.structure;
  if (frame.title) document.title = frame.title;
  showClocks();
  showSteppers();
  if (frame.html) { showSwitches(); showFilter(); }
  settleRows();
  showNeeds();
  say(frame.say);
}
// the server writes times of its own zone; the reader has another one
function showClocks() {
  const today = new Date().toDateString();
  for (const element of all('time[data-clock][datetime]')) {
    const at = new Date(element.dateTime);
    if (isNaN(at)) continue;
    const clock = at.toTimeString().slice(0, 5), [weekday, month, day] = at.toDateString().split(' ');
    const text = at.toDateString() === today ? clock
      : Math.abs(at - now()) < 6 * 864e5 ? `${weekday} ${clock}` : `${+day} ${month}${element.dataset.clock && ' ' + clock}`;
    if (element.textContent !== text) element.textContent = text;
  }
  const zone = find('[data-zone]');
  if (zone) zone.textContent = 'times are those of this computer';
}
const catchUp = () => setTimeout(() => {
  if (isBehind && live.url) { isBehind = false; live.seq = body.dataset.structure = ''; restart(); }
});
document.addEventListener('focusout', catchUp);
document.addEventListener('selectionchange', () => { if (isBehind && getSelection().isCollapsed) catchUp(); });
