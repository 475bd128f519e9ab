
(() => {
  const tip = document.createElement('div'); tip.id = 'tip'; tip.hidden = true;
  document.body.append(tip);
  const show = e => {
    const hit = e.target.closest && e.target.closest('.hit');
    if (!hit) { tip.hidden = true; return; }
    const title = hit.querySelector('title');
    if (title) { hit.dataset.tip = title.textContent; title.remove(); }
    if (hit.hasAttribute('title')) {
      hit.dataset.tip = hit.getAttribute('title'); hit.removeAttribute('title');
    }
    tip.textContent = hit.dataset.tip; tip.hidden = false;
    const x = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 6);
    tip.style.left = Math.max(6, x) + 'px'; tip.style.top = (e.clientY + 16) + 'px';
  };
  document.addEventListener('pointermove', show); document.addEventListener('pointerdown', show);
})();
