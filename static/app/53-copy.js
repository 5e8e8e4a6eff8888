// A text to take away: to the clipboard, or selected where a browser has none (plain http).
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]'), source = button && byId(button.dataset.copy);
  if (!source) return;
  try {
    await navigator.clipboard.writeText(source.textContent);
    say('Copied.');
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(source);
    say('Selected: copy it with Ctrl C.');
    button.textContent = 'Selected: Ctrl C';
  }
});
