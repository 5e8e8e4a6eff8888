// Forms that htmx posts: their end, and what went wrong.
const sender = event => event.detail && event.detail.ctx && event.detail.ctx.sourceElement;
const isStep = form => form instanceof HTMLFormElement && form.matches('.step') && field(form);
// a second press while the first is on its way is none: two clicks, one order
const busy = new WeakSet();
document.addEventListener('submit', event => {
  if (!busy.has(event.target) || isStep(event.target)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
document.addEventListener('htmx:before:request', event => {
  const form = sender(event);
  if (isStep(form)) Object.assign(stepOf(form), { isSent: true, asked: field(form).value.trim() });
  if (form) { sawOf.delete(form); busy.add(form); }
  showSteppers();
});
document.addEventListener('htmx:finally:request', event => {
  const form = sender(event);
  busy.delete(form);
  if (isStep(form)) Object.assign(stepOf(form), { isSent: false, settledAt: now() });
  showSteppers();
  const { response } = event.detail.ctx, panel = form && panelOf(form);
  if (panel && response && response.status < 400) shut(panel);
});
document.addEventListener('htmx:response:error', event => {
  const { text, response } = event.detail.ctx;
  // somebody was quicker: htmx has put in what it is now, with a button that does it all the same
  if (response.status === 409 && /^\s*<hx-partial/.test(text)) return refuse(sender(event));
  let error = {};
  try { error = JSON.parse(text).error || {}; } catch { /* not ours, then */ }
  const message = error.message || `The service answered ${response.status}`;
  failed(sender(event), error.hint ? `${message}. ${error.hint[0].toUpperCase()}${error.hint.slice(1)}.` : `${message}.`);
});
document.addEventListener('htmx:error', event => {
  const { ctx } = event.detail;
  if (ctx && !ctx.response) failed(sender(event), 'Not sent: the service does not answer, and nothing was changed. If it has ended, start it with the words that it was started with.');
});
function refuse(form) {
  if (isStep(form)) { stepOf(form).asked = undefined; restore(form); }
  refused = form;
}
function failed(form, message) {
  refuse(form);
  toast(message);
}
// What the reader had seen when he began goes with the order, whatever a frame has brought meanwhile.
const sawOf = new WeakMap();
const expected = form => find('input[name=expect]', form);
function saw(form) {
  if (expected(form) && !sawOf.has(form)) sawOf.set(form, (isStep(form) && stepOf(form).asked) || expected(form).value);
}
document.addEventListener('input', ({ target }) => { if (target.form) saw(target.form); });
document.addEventListener('reset', ({ target }) => sawOf.delete(target));
document.addEventListener('formdata', ({ target, formData }) => { if (sawOf.has(target)) formData.set('expect', sawOf.get(target)); });
