// What is spoken: changes of state only, joined, at most once in ten seconds.
const speech = { lines: [], spokeAt: 0, timer: 0 };
function say(text) {
  if (!text || speech.lines.includes(text)) return;
  speech.lines.push(text);
  speech.timer ||= setTimeout(() => {
    byId('say').textContent = speech.lines.join(' ');
    Object.assign(speech, { lines: [], spokeAt: now(), timer: 0 });
  }, Math.max(0, speech.spokeAt + 10000 - now()));
}
