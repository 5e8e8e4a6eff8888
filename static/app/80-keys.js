// Switches, dialogs and keys.
function showSwitches() {
  for (const button of all('[data-freeze]')) button.setAttribute('aria-pressed', live.isFrozen);
  for (const box of all('[data-keys-switch]')) box.checked = stored.get('keys') !== 'off';
}
function changeTheme() {
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  stored.set('theme', root.dataset.theme);
}
document.addEventListener('click', event => {
  const on = selector => event.target.closest(selector), stepper = on('form.step [data-step]'), opener = on('[data-open]');
  if (stepper) { event.preventDefault(); press(stepper.form, +stepper.dataset.step, event.shiftKey); }
  else if (on('[data-freeze]')) freeze();
  else if (on('[data-theme-btn]')) changeTheme();
  else if (opener && find(opener.dataset.open)) { event.preventDefault(); find(opener.dataset.open).showModal(); }
});
document.addEventListener('submit', ({ target }) => {
  const dialog = target.dataset.closes && find(target.dataset.closes);
  if (dialog && dialog.open) dialog.close();
});
let rowId = '';
const rows = () => all('#rows tr').filter(row => !row.hidden);
const row = () => document.activeElement.closest('#rows tr') || byId(rowId);
function focusRow(chosen) {
  if (!chosen) return;
  rowId = chosen.id;
  (find('.name', chosen) || find('a, button', chosen)).focus();
}
function move(by) {
  const list = rows(), at = list.indexOf(row());
  focusRow(list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))]);
}
function stepRow(direction, isFar) {
  const form = row() && find('form.step', row());
  if (form) press(form, direction, isFar);
}
let goesUntil = 0;
const pages = { o: 'overview', f: 'failures', a: 'activity', s: 'server' };
const keys = {
  '/': () => { const input = byId('f-q') || find('input[type=search]'); if (input) { input.focus(); input.select(); } },
  g: () => { goesUntil = now() + 2000; },
  u: () => { if (typeof undoLast === 'function') undoLast(); },
  j: () => move(1), k: () => move(-1),
  p: () => { const button = row() && find('[data-k=p]', row()); if (button) button.click(); },
  '+': () => stepRow(1), '=': () => stepRow(1), '-': () => stepRow(-1),
  '*': () => stepRow(1, true), _: () => stepRow(-1, true),
  e: () => { const input = row() && find('form.step input[name=requests]', row()); if (input) { input.focus(); input.select(); } },
  '.': freeze, t: changeTheme,
  '?': () => { const help = byId('help'); if (help) help.showModal(); },
};
document.addEventListener('keydown', event => {
  const isTyping = event.target.closest('input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]');
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || find('dialog[open]')) return;
  if (event.isComposing || stored.get('keys') === 'off') return;
  if (body.dataset.role === 'viewer' && 'pue+=-*_'.includes(event.key)) return;  // who looks orders nothing
  const tab = now() < goesUntil && pages[event.key];
  goesUntil = 0;
  if (tab) {
    event.preventDefault();
    const link = find(`[data-tab=${tab}]`);
    return link && link.click();
  }
  if (event.key === 'Enter' && event.target.matches('#rows span.name'))
    location.href = `${location.pathname.replace(/\/$/, '')}/p/${encodeURIComponent(event.target.textContent)}`;
  // a key that is held moves on, and orders nothing twice
  if (!Object.hasOwn(keys, event.key) || (event.repeat && !'jk+=-'.includes(event.key))) return;
  event.preventDefault();
  keys[event.key]();
});
