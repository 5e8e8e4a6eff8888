// The stream, its watchdog, and asking every two seconds where no stream comes through.
const live = {
  url: body.dataset.live, frameUrl: body.dataset.frame, source: null, seq: '', at: '', newsAt: now(),
  openedAt: 0, hasHeard: false, failures: 0, pollsUntil: 0, isDown: false, isFrozen: false, state: '',
};
const timers = {};
const later = (name, delayMs, act) => { clearTimeout(timers[name]); timers[name] = setTimeout(act, delayMs); };
const spread = delayMs => delayMs * (.7 + Math.random() * .6);
const isQuiet = () => live.isFrozen || document.hidden || !live.url;
const isPolling = () => now() < live.pollsUntil;
function address(base) {
  const url = new URL(base, location.href);
  url.searchParams.set('has', body.dataset.structure || '');
  if (live.seq) url.searchParams.set('after', live.seq);
  return url;
}
function take(frame) {
  if (live.isFrozen) return;
  if (frame.assets && frame.assets !== body.dataset.assets && renew(frame.assets)) return;
  if (frame.at !== live.at) { live.at = frame.at; live.newsAt = now(); }
  apply(frame);
  if (frame.seq) live.seq = frame.seq;
  showAge();
}
function open() {
  if (live.source || isQuiet()) return;
  const source = live.source = new EventSource(address(live.url));
  const hear = event => {
    live.hasHeard = true;
    live.failures = live.pollsUntil = 0;
    clearTimeout(timers.poll);
    live.hasLeft = false;
    take(JSON.parse(event.data));
  };
  live.openedAt = now();
  live.hasHeard = false;
  source.onmessage = hear;
  source.addEventListener('beat', hear);
  source.addEventListener('bye', () => { live.hasLeft = true; close(); retry(); });
  source.onerror = () => { close(); fail(); };
  // a proxy that keeps the stream to itself: the connection is open and nothing comes
  later('first', 4000, () => { if (live.source === source && !live.hasHeard) { close(); pollFor(300); } });
}
function close() { if (live.source) live.source.close(); live.source = null; }
function retry() { later('open', spread(Math.min(500 * 2 ** live.failures, 8000)), open); }
function fail() {
  live.failures += 1;
  if (live.failures >= 3) return pollFor(300);  // refused (too many tabs) or away: asking finds out
  poll();
  retry();
}
function pollFor(seconds) { live.pollsUntil = now() + seconds * 1000; poll(); }
// A service of another version was started: the page begins anew, once, and not under a hand.
function renew(version) {
  const isBusy = find('dialog[open]') || all('input:not([type=checkbox], [type=radio], #filter *), textarea').some(isHalfTyped) ||
    document.activeElement.matches('input, select, textarea');
  if (isBusy || stored.session('renewed') === version) {
    if (byId('news')) byId('news').hidden = false;
    return false;
  }
  stored.session('renewed', version);
  location.reload();
  return true;
}
async function poll() {
  clearTimeout(timers.poll);
  if (isQuiet()) return;
  await ask();
  if (isPolling()) later('poll', spread(2000), poll);
  else if (live.pollsUntil) { live.failures = live.pollsUntil = 0; open(); }
}
// Once a minute for who wants to be told: few enough for a tab that nobody looks at.
async function watch() {
  if (!document.hidden || !wantsNotes()) return;
  await ask();
  later('watch', 60000, watch);
}
async function ask() {
  try {
    const answer = await fetch(address(live.frameUrl), { signal: AbortSignal.timeout(8000), cache: 'no-store' });
    if (answer.status === 401) return location.reload();  // the session has ended: to the login
    if (!answer.ok) throw new Error(answer.status);
    const frame = await answer.json();
    const wasDown = live.isDown;
    live.isDown = live.hasLeft = false;
    if (!live.source || !live.hasHeard) take(frame);
    if (wasDown) { live.failures = live.pollsUntil = 0; open(); }  // it is back: a stream again
  } catch { live.isDown = true; }
}
function restart() { close(); if (isPolling()) poll(); else open(); }
function showAge() {
  const sign = find('#l-page'), age = (now() - live.newsAt) / 1000, seconds = Math.round(age);
  if (!sign || !live.url || (document.hidden && !live.isFrozen)) return;
  // a service that was started for a run leaves with it: what is shown is how it ended
  const isOver = live.hasLeft && find('#verdict .done');
  const state = live.isFrozen ? 'frozen' : isOver ? 'over' : age < 4 ? 'live' : age < 15 ? 'late' : age < 25 ? 'old' : 'cut';
  const text = {
    frozen: `frozen at ${live.frozenAt}`, live: isPolling() ? 'live (every 2 s)' : 'live',
    over: 'ended with the run', late: `${seconds} s old`, old: `no updates for ${seconds} s`,
    cut: `disconnected, no updates for ${seconds} s`,
  }[state];
  const isOld = state === 'old' || state === 'cut', wasOld = live.state === 'old' || live.state === 'cut';
  root.classList.toggle('stale', isOld);
  // the other signals came with the page's last news: without newer ones they say of when they are
  const asOf = state === 'live' || isOver ? '' : ` as of ${new Date(live.newsAt).toTimeString().slice(0, 8)}`;
  root.classList.toggle('aged', state !== 'live' && !isOver);
  for (const each of all('.links i')) if (each.textContent !== asOf) each.textContent = asOf;
  sign.classList.toggle('off', state !== 'live');
  const word = find('b', sign);
  if (word && word.textContent !== text) word.textContent = text;
  if (isOld && !wasOld) say('Live updates have stopped. The figures shown are old.');
  if (wasOld && state === 'live') say('Live updates are back.');
  live.state = state;
}
function freeze() {
  if (!live.url) return;
  live.isFrozen = !live.isFrozen;
  live.frozenAt = new Date().toTimeString().slice(0, 8);
  say(live.isFrozen ? 'The figures are frozen.' : 'The figures move again.');
  root.classList.toggle('frozen', live.isFrozen);
  showSwitches();
  if (live.isFrozen) close(); else { live.newsAt = now(); restart(); }
  showAge();
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(timers.hidden);
  clearTimeout(timers.watch);
  if (document.hidden) { later('hidden', 10000, close); later('watch', 60000, watch); }
  else if (!live.source) restart();
  else showAge();
});
addEventListener('pagehide', close);
addEventListener('pageshow', event => { if (event.persisted) restart(); });
setInterval(() => {
  showAge();
  showSteppers();
  const quietMs = now() - Math.max(live.newsAt, live.openedAt);
  // a laptop that slept: the socket looks open and is not
  if (live.source && live.hasHeard && quietMs > 10000 && !document.hidden) restart();
  const basic = byId('basic'), htmxIs = root.dataset.htmx;
  if (basic && find('[hx-post]')) basic.hidden = !(htmxIs === 'off' || (htmxIs === 'wait' && performance.now() > 3000));
}, 1000);
