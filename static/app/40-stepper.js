// The stepper: presses change the number at once and become one request.
const steps = new WeakMap();  // form → { timer, isSent, asked, settledAt }
const stepOf = form => steps.get(form) || steps.set(form, { timer: 0, isSent: false, settledAt: 0 }).get(form);
const field = form => find('input[name=requests]', form);
const isWaiting = form => { const step = stepOf(form); return Boolean(step.timer || step.isSent); };
function inUse(input) {
  const form = input.closest('form.step');
  if (!form) return input === document.activeElement;
  // a figure that was sent is no longer the reader's: the field follows the server again
  return isWaiting(form) || (input === document.activeElement && !stepOf(form).isOrdered);
}
function showSteppers() {
  for (const form of all('form.step')) {
    const input = field(form), step = stepOf(form);
    form.classList.toggle('wait', isWaiting(form));
    const words = form.parentElement && find('small', form.parentElement), from = input.defaultValue;
    if (words && isWaiting(form) && from !== input.value) words.dataset.asked = `${from || 'share'} → ${input.value}`;
    else if (words) delete words.dataset.asked;
    // what the server says holds, once it had time to say it. A field that was set by script keeps
    // what stands in it, and what is selected, when a frame brings another default.
    if (isWaiting(form) || now() < step.settledAt + 3000) continue;
    step.asked = undefined;
    if (!inUse(input)) input.value = input.defaultValue;
  }
}
function press(form, direction, isFar) {
  const input = field(form), value = parseInt(input.value, 10), most = +input.max || 10000;
  if (!value) return input.focus();  // its share is not known here: a figure has to be typed
  const from = direction < 0 ? value - 1 : value;
  const one = from < 16 ? 1 : from < 64 ? 4 : from < 256 ? 8 : 16;
  const wanted = !isFar ? value + direction * one : direction > 0 ? value * 2 : Math.ceil(value / 2);
  input.value = Math.max(1, Math.min(most, wanted));
  const step = stepOf(form);
  saw(form);
  clearTimeout(step.timer);
  step.timer = setTimeout(() => commit(form), 600);
  showSteppers();
}
function commit(form) {
  const input = field(form), step = stepOf(form);
  clearTimeout(step.timer);
  step.timer = 0;
  Object.assign(step, { isEdited: false, isOrdered: true });
  if (input.value.trim() === (step.asked ?? input.defaultValue)) return showSteppers();
  form.requestSubmit();
}
function restore(form, value = field(form).defaultValue) {
  const step = stepOf(form);
  clearTimeout(step.timer);
  step.timer = 0;
  step.isEdited = false;
  sawOf.delete(form);
  field(form).value = value;
  showSteppers();
}
document.addEventListener('input', ({ target }) => {
  if (target.matches('form.step input[name=requests]')) Object.assign(stepOf(target.form), { isEdited: true, isOrdered: false });
});
document.addEventListener('focusin', ({ target }) => {
  if (target.matches('form.step input[name=requests]')) stepOf(target.form).isOrdered = false;
});
// Enter orders, and so does leaving the field, but only what was typed since the last order
document.addEventListener('focusout', ({ target }) => {
  if (target.matches('form.step input[name=requests]') && stepOf(target.form).isEdited) commit(target.form);
});
document.addEventListener('change', ({ target }) => {
  if (target.matches('[data-keys-switch]')) stored.set('keys', target.checked ? 'on' : 'off');
});
document.addEventListener('keydown', event => {
  if (!event.target.matches('form.step input[name=requests]')) return;
  if (event.key === 'Enter') { event.preventDefault(); commit(event.target.form); }
  if (event.key === 'Escape') { restore(event.target.form, stepOf(event.target.form).asked); focusRow(event.target.closest('tr')); }
});
