// Runs first, from our own address, before the page is drawn: the chosen theme, and an eye on htmx.
// If the CDN's copy does not come, our own copy is asked for where there is one (data-second);
// without any the page stays in basic mode: figures still move (app.js), buttons reload the page.
(() => {
  'use strict';
  const root = document.documentElement;
  const isHtmx = element => element instanceof HTMLScriptElement && 'htmxSrc' in element.dataset;
  try {
    if (localStorage.theme) root.dataset.theme = localStorage.theme;
  } catch { /* storage is forbidden here: the system's theme holds */ }
  root.dataset.htmx = 'wait';
  // load and error do not bubble, but they can be caught on their way down
  document.addEventListener('load', event => {
    if (isHtmx(event.target)) root.dataset.htmx = 'on';
  }, true);
  document.addEventListener('error', event => {
    if (!isHtmx(event.target)) return;
    const { second } = event.target.dataset;
    if (!second) { root.dataset.htmx = 'off'; return; }
    const script = document.createElement('script');
    script.src = second;
    script.integrity = event.target.integrity;
    script.crossOrigin = 'anonymous';
    script.dataset.htmxSrc = '';
    // the next page names our own copy first
    document.cookie = 'assets=local; max-age=86400; path=/; samesite=lax';
    document.head.append(script);
  }, true);
  // a page without the script tag (assets = off) waits for nothing
  document.addEventListener('DOMContentLoaded', () => {
    if (!document.querySelector('[data-htmx-src]')) root.dataset.htmx = 'off';
  });
})();
