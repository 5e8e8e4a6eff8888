// The panels of rarer orders: one is open at a time, and half-typed figures last as long as it.
const panelOf = element => element.closest('details.more[open]');
const isHalfTyped = input => input.value !== input.defaultValue;
const halfTyped = () => all('details.more[open] input').filter(isHalfTyped).map(input => [input.id, input.value]);
// new markup brings another default, or another field
function typeAgain(typed) {
  for (const [id, value] of typed) {
    const input = byId(id);
    if (input && panelOf(input) && !isHalfTyped(input)) input.value = value;
    if (input) explain(input);
  }
}
const startOver = panel => all('form', panel).forEach(form => form.reset());
function shut(panel) {
  panel.open = false;
  startOver(panel);  // at once: opened again in the same moment, nobody is told that it was shut
  find('summary', panel).focus();
}
document.addEventListener('toggle', ({ target }) => {
  if (!target.matches('details.more')) return;
  if (!target.open) return startOver(target);
  for (const other of all('details.more[open]')) if (other !== target) other.open = false;
}, true);
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || event.target.closest('form.step') || find('dialog[open]')) return;
  const panel = panelOf(event.target) || find('details.more[open]');
  if (panel) { event.preventDefault(); shut(panel); }
});
// a press elsewhere closes it, unless that would lose something
document.addEventListener('click', event => {
  for (const panel of all('details.more[open]'))
    if (!panel.contains(event.target) && !all('input', panel).some(isHalfTyped)) panel.open = false;
});
// what a limit would mean is said while it is typed
const asking = new WeakMap();
function explain(input) {
  const form = input.form, place = form && form.dataset.asks && find('.means', form);
  if (!place || input.type === 'hidden') return;
  clearTimeout(asking.get(form));
  if (!isHalfTyped(input) || !input.value.trim()) { place.textContent = ''; return; }
  asking.set(form, setTimeout(async () => {
    const typed = input.value;
    let said = '';
    try {
      const answer = await fetch(form.dataset.asks + encodeURIComponent(typed), { headers: { Accept: 'text/plain' } });
      said = await answer.text();
      if (!answer.ok) said = (JSON.parse(said).error || {}).message || '';
    } catch { return; }
    // markup that has come meanwhile has another place for it
    const now = byId(place.id);
    if (now && input.value === typed) now.textContent = said;
  }, 300));
}
document.addEventListener('input', ({ target }) => explain(target));
document.addEventListener('reset', ({ target }) => all('.means', target).forEach(place => { place.textContent = ''; }));
