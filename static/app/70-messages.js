// Messages: ten seconds, longer while somebody is at them. What can be taken back stays known, unseen,
// for five minutes: a key takes back the newest, then the one before.
const toasts = byId('toast');
function toast(message) {
  const box = document.createElement('div'), line = document.createElement('span');
  box.className = 'toast bad';
  line.textContent = message;
  box.append(line);
  if (toasts) toasts.append(box);
}
// What was refused stands at its control, in view, until the page is scrolled.
let refused; // the form whose message comes next
function placeAt(form, box) {
  const { left, bottom, width } = form.getBoundingClientRect();
  if (!width || form.closest('#toast')) return;
  box.classList.add('at');
  box.form = form;
  box.style.left = `${Math.max(16, Math.min(left, innerWidth - box.offsetWidth - 16))}px`;
  box.style.top = `${Math.max(16, Math.min(bottom + 6, innerHeight - box.offsetHeight - 16))}px`;
}
document.addEventListener('scroll', () => all('.toast.at').forEach(box => box.classList.remove('at')), { passive: true });
function leave(box) {
  if (box.matches(':hover, :focus-within')) return setTimeout(leave, 2000, box);
  if (!find('[data-undo]', box)) return box.remove();
  box.hidden = true;
  setTimeout(() => box.hidden && box.remove(), 3e5);
}
function undoLast() {
  const last = all('[data-undo]', toasts || body).pop();
  if (last) last.form.requestSubmit();
  return Boolean(last);
}
if (toasts) {
  new MutationObserver(changes => {
    for (const { addedNodes } of changes) for (const box of addedNodes) if (box.nodeType === 1) {
      setTimeout(leave, 10000, box);
      if (refused && box.matches('.bad')) placeAt(refused, box);
      refused = undefined;
    }
    const seen = [...toasts.children].filter(box => !box.hidden), stack = [...toasts.children].filter(box => box.hidden);
    for (const box of seen.slice(0, -4)) leave(box);
    for (const box of stack.slice(0, -10)) box.remove();
  }).observe(toasts, { childList: true });
}
// what was refused is no news once the same control is used again
document.addEventListener('htmx:before:request', event => {
  for (const box of all('.toast.at')) if (box.form === sender(event)) box.remove();
});
// what was answered once is not offered again
document.addEventListener('htmx:before:request', event => {
  const form = event.detail && event.detail.ctx && event.detail.ctx.sourceElement, box = form && form.closest('#toast .toast');
  if (box && form.matches('form')) { box.hidden = true; for (const button of all('[data-undo]', box)) button.removeAttribute('data-undo'); }
});
document.addEventListener('click', event => {
  const shut = event.target.closest('[data-shut]');
  if (shut) shut.closest('dialog').close();
});
