// Rows: which are shown, and their order, which does not change under a hand.
const usual = { q: '', state: 'all', sort: 'attention' };
const groups = { bad: 'attention', warn: 'attention', pause: 'paused', idle: 'over', done: 'over' };
const idsOf = list => [...list.children].map(each => each.id);
// not :hover, which new markup under a pointer that rests has not yet
const pointer = { x: -1, y: -1 };
const isHandIn = element => element.contains(document.activeElement) ||
  (pointer.x >= 0 && element.contains(document.elementFromPoint(pointer.x, pointer.y)));
const putPointer = (x, y) => Object.assign(pointer, { x, y });
document.addEventListener('pointermove', ({ clientX, clientY }) => putPointer(clientX, clientY));
document.addEventListener('pointerup', ({ pointerType }) => { if (pointerType === 'touch') putPointer(-1, -1); });
root.addEventListener('pointerleave', () => putPointer(-1, -1));
let wanted = [];  // the order that the rows should have, while they wait for the hand to leave
// How few rows must be moved to bring one order into the other.
function nMoved(shown, order) {
  const best = [], place = id => order.indexOf(id);
  shown.forEach((id, n) => {
    best[n] = 1 + Math.max(0, ...shown.slice(0, n).map((other, m) => place(other) < place(id) ? best[m] : 0));
  });
  return shown.length - Math.max(0, ...best);
}
// Give new markup the order that is on the page, if somebody is at the rows.
function keepOrder(content) {
  const fresh = find('#rows', content), old = byId('rows');
  // who is shown is decided here: an order must not take a row away from under the hand
  for (const each of all('tr[data-name]', content)) if (byId(each.id)) each.hidden = byId(each.id).hidden;
  if (!fresh || !old) return;
  wanted = [];
  if (!isHandIn(old)) return;
  const order = idsOf(fresh), shown = idsOf(old).filter(id => order.includes(id));
  if (!nMoved(shown, order)) return;
  wanted = order;
  const added = order.filter(id => !shown.includes(id));
  for (const id of [...shown, ...added]) fresh.append(find(`[id="${id}"]`, fresh));
}
function sortRows() {
  for (const id of wanted) if (byId(id)) byId('rows').append(byId(id));
  wanted = [];
  settleRows();
}
// After each frame: the order, where it may be had by now, and who is shown.
function settleRows(isAsked = false) {
  const list = byId('rows'), button = byId('resort');
  if (!list || !button) return;
  if (wanted.length && !isHandIn(list)) return sortRows();
  const n = wanted.length ? nMoved(idsOf(list), wanted) : 0, text = n ? `${n} ${n === 1 ? 'row' : 'rows'} moved, re-sort` : '';
  if (button.textContent !== text) { button.textContent = text; button.hidden = !n; }
  const form = byId('filter');
  if (!form) return;
  const { q, state } = form.elements, part = q.value.trim().toLowerCase();
  const rowsOf = [...list.children], shown = rowsOf.filter(each => {
    const { name, kind } = each.dataset;
    const isMeant = name.toLowerCase().includes(part) && (state.value === 'all' || state.value === (groups[kind] || 'running'));
    // a row that an order takes out of the group does not vanish under the hand that gave it
    const isShown = isMeant || (!isAsked && !each.hidden && isHandIn(each));
    if (each.hidden === isShown) each.hidden = !isShown;
    return isShown;
  });
  byId('no-rows').hidden = shown.length > 0 || !rowsOf.length;
  const among = state.value === 'all' ? '' : ` among those under “${state.selectedOptions[0].text}”`;
  setText('no-rows-why', `No partition matches${part ? ` “${q.value.trim()}”` : ''}${among}.`);
}
// The address says what is asked for: what it says holds, whatever new markup says.
function showFilter(isAsked = false) {
  const form = byId('filter'), query = new URLSearchParams(location.search);
  if (!form) return;
  for (const [name, value] of Object.entries(usual)) {
    const input = form.elements[name], asked = query.get(name) || value;
    if (input === document.activeElement || input.value === asked) continue;
    input.value = asked;
    if (!input.value) input.value = value;
  }
  for (const link of all('.ranges a')) link.href = carried(link.href);
  settleRows(isAsked);
}
function carried(address) {
  const url = new URL(address, location.href), form = byId('filter');
  for (const [name, value] of Object.entries(usual)) {
    const given = form.elements[name].value.trim();
    if (given === value) url.searchParams.delete(name); else url.searchParams.set(name, given);
  }
  return url.href;
}
function askFor(isOrder) {
  history.replaceState(null, '', carried(location.href));
  if (live.url) Object.assign(live, { url: carried(live.url), frameUrl: carried(live.frameUrl) });
  showFilter(true);
  if (isOrder && live.url) { live.seq = ''; restart(); }
}
document.addEventListener('input', ({ target }) => { if (target.matches('#filter *')) askFor(target.name === 'sort'); });
document.addEventListener('submit', event => { if (event.target.id === 'filter') event.preventDefault(); });
document.addEventListener('click', event => {
  if (event.target.id === 'resort') { sortRows(); focusRow(rows()[0]); }
  if (!event.target.closest('#no-rows a')) return;
  event.preventDefault();
  const { q, state } = byId('filter').elements;
  q.value = '';
  state.value = 'all';
  askFor();
  q.focus();
});
