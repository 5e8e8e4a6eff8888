// Reading the chart, by pointer or arrow keys: figures come back from the lines and their scale.
const lens = { at: 0, text: '', newest: '' };  // the moment that is read (0: none), as it is said
function chartLine(path, n, top) {
  const found = [], step = 960 / Math.max(1, n - 1);
  let x = 0, y = 0;
  for (const [, kind, across, down] of (path ? path.getAttribute('d') : '').matchAll(/([Ml])(-?\d+) ?(-?\d+)/g)) {
    [x, y] = kind === 'M' ? [+across, +down] : [x + +across, y + +down];
    found[Math.round(x / step)] = top * (1 - y / 2000);
  }
  return found;
}
function chartSteps(path, n, top) {
  const found = [], step = 960 / Math.max(1, n - 1), place = x => Math.round(x / step);
  let x = 0, y = 0;
  for (const [, kind, one, two] of (path ? path.getAttribute('d') : '').matchAll(/([MHV])(\d+)(?: (\d+))?/g)) {
    if (kind === 'M') [x, y] = [+one, +two];
    else if (kind === 'H') { for (let at = place(x); at <= place(+one); at += 1) found[at] = top - y; x = +one; }
    else y = +one;
    found[place(x)] = top - y;
  }
  return found;
}
function chartFigure(value) {
  if (value > 0 && value < 10) return value.toFixed(1);
  const [scale, unit] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']].find(([least]) => Math.round(value) >= least) || [1, ''];
  return scale === 1 ? `${Math.round(value)}` : `${+(value / scale).toPrecision(3)}${unit}`;
}
function chartMoments(box) {
  const begin = Date.parse(box.dataset.begin), n = +box.dataset.n;
  return { begin, n, width: (Date.parse(box.dataset.end) - begin) / n };
}
// Frames write the newest moment: this runs after each of them, and puts the reader's back.
function readChart() {
  const box = byId('ch-box'), cursor = byId('ch-cur');
  if (!box || !lens.at) return;
  const { begin, n, width } = chartMoments(box), place = Math.max(0, Math.min(n - 1, Math.floor((lens.at - begin) / width)));
  const at = new Date(begin + (place + .5) * width), top = +box.dataset.top, requests = +box.dataset.requests;
  const own = chartLine(byId('ch-own'), n, top)[place], server = chartLine(byId('ch-srv'), n, top)[place];
  const wanted = chartSteps(byId('ch-con'), n, requests)[place];
  const day = at.toDateString() === new Date().toDateString() ? '' : `${at.toDateString().slice(0, 3)} `;
  const text = `${day}${at.toTimeString().slice(0, width < 6e4 ? 8 : 5)}: ` + [
    own === undefined ? 'nothing recorded' : `${chartFigure(own)} tok/s`,
    server === undefined ? '' : `server ${chartFigure(server)}`,
    wanted === undefined ? '' : `concurrency ${Math.round(wanted)}`,
  ].filter(Boolean).join(', ');
  if (byId('ch-out').textContent !== lens.text) lens.newest = byId('ch-out').textContent;
  lens.text = text;
  setText('ch-out', text);
  setAttribute('ch-box', 'aria-valuenow', `${place}`);
  setAttribute('ch-box', 'aria-valuetext', text);
  const x = `${100 * place / Math.max(1, n - 1)}%`;
  for (const [name, value] of [['x1', x], ['x2', x], ['visibility', 'visible']]) cursor.setAttribute(name, value);
}
function leaveChart() {
  const box = byId('ch-box');
  if (!lens.at || !box) return;
  lens.at = 0;
  byId('ch-cur').setAttribute('visibility', 'hidden');
  setText('ch-out', lens.newest);
  setAttribute('ch-box', 'aria-valuetext', lens.newest);
  setAttribute('ch-box', 'aria-valuenow', `${chartMoments(box).n - 1}`);
}
function lookAt(box, place) {
  const { begin, n, width } = chartMoments(box);
  lens.at = begin + (Math.max(0, Math.min(n - 1, place)) + .5) * width;
  readChart();
}
document.addEventListener('pointermove', ({ target, clientX }) => {
  const box = target.closest && target.closest('#ch-box');
  if (!box) return document.activeElement.id === 'ch-box' ? null : leaveChart();
  const { left, width } = box.getBoundingClientRect();
  lookAt(box, Math.round((clientX - left) / width * (chartMoments(box).n - 1)));
});
document.addEventListener('keydown', event => {
  const box = event.target.closest('#ch-box'), { key } = event;
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
  const { n } = chartMoments(box), place = +box.getAttribute('aria-valuenow');
  const wanted = {
    ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1,
    PageDown: place - 10, PageUp: place + 10, Home: 0, End: n - 1,
  }[key];
  if (key === 'Escape') leaveChart();
  if (wanted === undefined) return;
  event.preventDefault();
  lookAt(box, wanted);
});
document.addEventListener('focusout', ({ target }) => { if (target.id === 'ch-box') leaveChart(); });
