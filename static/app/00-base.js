// The live page. The files of this folder are joined, in the order of their names, into one script
// with one scope of its own: what one declares, the others see. Needs nothing else; uses htmx to
// change markup in place and to post forms when htmx has come.

'use strict';
const root = document.documentElement, body = document.body;
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = id => document.getElementById(id);
const now = () => Date.now();
const stored = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* not kept, then */ } },
  session(key, value) {
    try { return value === undefined ? sessionStorage.getItem(key) : sessionStorage.setItem(key, value); } catch { return value; }
  },
};
