// Telling a person who looks elsewhere: the icon of the tab, and messages of the browser.
const noteSwitch = byId('notify'), noteWhy = byId('notify-why');
const wantsNotes = () => stored.get('notify') === 'on' && window.Notification && Notification.permission === 'granted' && byId('tiles');
// what needs a person, by its words without figures: they change, the need does not
const needsNow = () => new Map(all('#tiles li[id^=need]').map(({ textContent }) => [textContent.replace(/(?<!\w)[\d.,:]+\s?(?:%|\w*)/g, ''), textContent]));
let knownNeeds = needsNow();
function showNeeds() {
  const icon = byId('icon'), needs = needsNow();
  const { calm, alert } = icon.dataset, wantedIcon = document.title.startsWith('(!') ? alert : calm;
  if (icon.getAttribute('href') !== wantedIcon) icon.href = wantedIcon;
  if (wantsNotes() && (document.hidden || !document.hasFocus()))
    for (const [need, text] of needs) if (!knownNeeds.has(need)) note(need, text);
  knownNeeds = needs;
}
function note(need, text) {
  const name = document.title.split(' · ').pop();
  // several tabs of one run make one message of it
  const message = new Notification(`${name} needs you`, { body: text, tag: `${location.pathname} ${need}`, icon: byId('icon').dataset.alert });
  message.onclick = () => { window.focus(); message.close(); };
}
function showNoteSwitch() {
  if (!noteSwitch) return;
  const state = !window.Notification || !isSecureContext ? 'none' : Notification.permission;
  noteSwitch.disabled = state === 'none' || state === 'denied';
  noteSwitch.setAttribute('aria-pressed', state === 'granted' && stored.get('notify') === 'on');
  noteWhy.textContent = state === 'none'
    ? 'This browser notifies only over HTTPS or on localhost: reach this page through a tunnel (ssh -L), or let the service tell you (longwatch notify-test).'
    : state === 'denied' ? 'This browser blocks notifications of this address; its settings of the site allow them.'
      : 'While an overview is open in a tab, also one that is hidden.';
}
if (noteSwitch) noteSwitch.addEventListener('click', async () => {
  const isOn = noteSwitch.getAttribute('aria-pressed') === 'true';
  stored.set('notify', isOn ? 'off' : 'on');
  if (!isOn && Notification.permission === 'default') await Notification.requestPermission();
  showNoteSwitch();
});
