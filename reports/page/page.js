// Puts the parts together.

// `moment` becomes the one that everything below the timeline speaks of.
function chooseMoment(moment) {
  chosen = moment;
  const text = count > 0 ? momentText(moment) : 'nothing was allocated';
  element('moment').textContent = text;
  element('alive-when').textContent = moment === peakMoment ? 'at the peak' : moment === count - 1 && data.failed ? 'when memory runs out' : 'at the chosen moment';
  timeline.setAttribute('aria-valuemin', '0');
  timeline.setAttribute('aria-valuemax', String(Math.max(0, count - 1)));
  timeline.setAttribute('aria-valuenow', String(moment));
  timeline.setAttribute('aria-valuetext', text);
  drawTimeline();
  growTreemap();
  if (tables[state.table].alive) drawTable();
}

if (data.failed && count > 0) chosen = count - 1;
{
  const phase = count > 0 && phaseOf(chosen);
  view.step = phase && phase.step > 0 ? phase.step : 0;
  showWhole();
}
drawSwitches();
drawLegend();
drawGrouping();
drawTabs();
drawTable();
chooseMoment(chosen);
const drawAll = () => { drawTimeline(); drawTreemap(); };
window.addEventListener('resize', drawAll);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);

// What was painted, for tests that look at the page: the colours of the canvases and their shares.
function painted(canvas) {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 250) continue;
    const colour = '#' + [pixels[i], pixels[i + 1], pixels[i + 2]].map((v) => v.toString(16).padStart(2, '0')).join('');
    if (colours.includes(colour)) seen.set(colour, (seen.get(colour) || 0) + 1);
  }
  return [...seen].map(([colour, n]) => categories[colours.indexOf(colour)] + ':' + Math.round(1000 * n * 4 / pixels.length)).sort().join(' ');
}
document.body.dataset.timeline = painted(timeline);
document.body.dataset.treemap = painted(treemap);
document.body.dataset.moments = String(count);
document.body.dataset.rows = String(element('table').tBodies[0].rows.length);
document.body.dataset.ready = 'yes';
