// What is alive at the chosen moment, as areas: by module or by kind, equal layers folded.

const treemap = element('treemap');
const grouping = { by: 'module', inside: '', picked: 0 };
let tree = null, inside = null, boxes = [], around = [];  // around: the boxes directly inside the one that is shown

function child(node, key, name) {
  if (!node.children.has(key)) node.children.set(key, { key: node.key + '\u0000' + key, name: name, parent: node, size: 0, children: new Map(), layers: new Set() });
  return node.children.get(key);
}

// A tree of modules (or of kinds, and modules in these) whose leaves are tensors that look alike.
function treeOf(moment) {
  const root = { key: '', name: 'everything', size: 0, children: new Map(), layers: new Set() };
  const fold = element('fold').checked;
  for (const stay of aliveAt(moment)) {
    let node = root, at = '';
    node.size += stay.size;
    if (grouping.by === 'kind') { node = child(node, 'kind ' + stay.category, kinds[stay.category]); node.size += stay.size; }
    for (const part of stay.module === '' ? [] : stay.module.split('.')) {
      at += (at ? '.' : '') + part;
      const name = fold && /^\d+$/.test(part) ? '*' : part;
      node = child(node, name, name);
      node.size += stay.size;
      node.layers.add(at);
    }
    const label = stay.tensor && stay.op && !stay.tensor.match(/^\S+ /) ? stay.op.replace(/^aten::/, '') + ' ' + stay.tensor : stay.tensor || stay.op || kinds[stay.category];
    const leaf = child(node, '\u0000' + label + stay.category, label);
    leaf.leaf = true;
    leaf.stay = stay;
    leaf.size += stay.size;
    leaf.times = (leaf.times || 0) + 1;
  }
  return root;
}

// Modules with nothing but one module in them are one box.
function shortened(node) {
  let name = node.name, end = node;
  while (end.children.size === 1 && ![...end.children.values()][0].leaf) { end = [...end.children.values()][0]; name += '.' + end.name; }
  const layers = end.layers.size > 1 ? ' ×' + end.layers.size : '';
  return [name + layers, end];
}

// Squarified: rows of rectangles that are as square as can be (Bruls, Huizing, van Wijk 2000).
function squarify(items, x, y, w, h, place) {
  items = items.slice().sort((a, b) => b.size - a.size);
  let sum = items.reduce((s, item) => s + item.size, 0);
  let i = 0;
  while (i < items.length && w > 0.5 && h > 0.5) {
    const side = Math.min(w, h), area = w * h / sum;
    let row = 0, j = i, worst = Infinity;
    for (; j < items.length; ++j) {
      const next = row + items[j].size, length = next * area / side;
      const a = items[i].size * area / length, b = items[j].size * area / length;
      const ratio = Math.max(a / length, length / a, b / length, length / b);
      if (ratio > worst) break;
      worst = ratio;
      row = next;
    }
    const length = row * area / side;
    let offset = 0;
    for (let k = i; k < j; ++k) {
      const extent = items[k].size * area / length;
      if (w >= h) place(items[k], x, y + offset, length, extent); else place(items[k], x + offset, y, extent, length);
      offset += extent;
    }
    if (w >= h) { x += length; w -= length; } else { y += length; h -= length; }
    sum -= row;
    i = j;
  }
}

// A text cut at its end so that it fits; nothing where hardly a letter does.
function drawLabel(context, text, x, y, room_, colour) {
  let kept = text.length, cut = text;
  for (let over; (over = context.measureText(cut).width / (room_ - 6)) > 1 && kept > 2; cut = text.slice(0, kept) + '…') kept = Math.min(kept - 1, Math.floor(kept / over));
  if (kept <= 2 && cut !== text) return;
  context.fillStyle = colour;
  context.fillText(cut, x + 3, y + 2);
}

function paintBox(context, node, x, y, w, h, ink, paper, edge) {
  const [name, end] = node.leaf ? [node.name, node] : shortened(node);
  const box = { node: end, name: name, x: x, y: y, w: w, h: h };
  boxes.push(box);
  if (node.leaf) {
    context.fillStyle = colours[node.stay.category % colours.length];
    context.fillRect(x, y, Math.max(0, w - 1), Math.max(0, h - 1));
    if (h > 15) drawLabel(context, name + (node.times > 1 ? ' ×' + node.times : ''), x, y, w, '#10161c');
    if (h > 30) drawLabel(context, bytes(node.size), x, y + 13, w, '#10161c');
    return box;
  }
  context.fillStyle = paper;
  context.fillRect(x, y, w - 1, h - 1);
  context.strokeStyle = edge;
  context.strokeRect(x + 0.5, y + 0.5, Math.max(0, w - 2), Math.max(0, h - 2));
  const head = h > 32 && w > 40 ? 16 : 0;
  if (head) drawLabel(context, name + '  ' + bytes(end.size), x, y + 1, w, ink);
  squarify([...end.children.values()], x + 2, y + head + 1, w - 5, h - head - 4, (item, ...at) => paintBox(context, item, ...at, ink, paper, edge));
  return box;
}

// The nodes around a node, the outermost first, and itself.
function chainOf(node) {
  const chain = [];
  for (let at = node; at; at = at.parent) chain.unshift(at);
  return chain;
}

function drawTreemap() {
  const [context, w, h] = prepare(treemap);
  boxes = [];
  around = [];
  context.textBaseline = 'top';
  const ink = style('--ink'), paper = style('--back'), edge = style('--soft');
  squarify([...inside.children.values()], 0, 0, w, h, (node, ...at) => around.push(paintBox(context, node, ...at, ink, paper, edge)));
  const pick = around[Math.min(grouping.picked, around.length - 1)];
  if (pick && document.activeElement === treemap) {
    context.strokeStyle = style('--accent');
    context.lineWidth = 3;
    context.strokeRect(pick.x + 1.5, pick.y + 1.5, Math.max(0, pick.w - 4), Math.max(0, pick.h - 4));
  }
  element('crumbs').replaceChildren(...chainOf(inside).flatMap((node, i, chain) => {
    const link = make('button', 'link', node.name + (node.layers.size > 1 ? ' ×' + node.layers.size : ''));
    link.disabled = i + 1 === chain.length;
    link.onclick = () => goInside(node);
    return i === 0 ? [link] : [' › ', link];
  }), '  ' + bytes(inside.size) + (inside === tree ? '' : ' of ' + bytes(tree.size)));
}

function goInside(node) {
  inside = node;
  grouping.inside = node.key;
  grouping.picked = 0;
  drawTreemap();
}

function describeBox(box) {
  const node = box.node, share = percent(node.size, tree.size);
  const where = chainOf(node.leaf ? node.parent : node).slice(1).map((at) => at.name).join('.') || '(root)';
  if (!node.leaf) return [where + (node.layers.size > 1 ? ' ×' + node.layers.size : ''), bytes(node.size) + ', ' + share].join('\n');
  return [node.name + (node.times > 1 ? ' ×' + node.times : ''), kinds[node.stay.category] + ' of ' + where + (node.stay.op ? ', made by ' + node.stay.op : ''), node.stay.line, bytes(node.size) + ', ' + share].filter((text) => text).join('\n');
}

// The moment has changed, or how it is grouped: stays where it was, if that is still there.
function growTreemap() {
  tree = treeOf(chosen);
  inside = tree;
  for (const part of grouping.inside.split('\u0000').slice(1)) {
    const next = inside.children.get(part);
    if (!next || next.leaf) break;
    inside = next;
  }
  drawTreemap();
}

const boxAt = (e) => {
  const r = treemap.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
  let best = null;
  for (const box of boxes) if (x >= box.x && y >= box.y && x < box.x + box.w && y < box.y + box.h) best = box;
  return best;
};
treemap.addEventListener('pointermove', (e) => { const box = boxAt(e); if (box) showTip(element('treemap-tip'), treemap, e, describeBox(box)); });
treemap.addEventListener('pointerleave', () => { element('treemap-tip').style.display = 'none'; });
treemap.addEventListener('click', (e) => {
  const box = boxAt(e);
  if (!box) return;
  const next = chainOf(box.node)[chainOf(inside).length];
  if (next && !next.leaf) goInside(shortened(next)[1]);
  element('chosen').textContent = describeBox(box).replace(/\n/g, ' · ');
});
treemap.addEventListener('keydown', (e) => {
  const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
  if (move && around.length) grouping.picked = (Math.min(grouping.picked, around.length - 1) + move + around.length) % around.length;
  else if (e.key === 'Enter' && around[grouping.picked] && !around[grouping.picked].node.leaf) goInside(around[grouping.picked].node);
  else if ((e.key === 'Backspace' || e.key === 'Escape') && inside.parent) goInside(inside.parent);
  else return;
  e.preventDefault();
  drawTreemap();
  const pick = around[grouping.picked];
  if (pick) element('chosen').textContent = describeBox(pick).replace(/\n/g, ' · ');
});
treemap.addEventListener('focus', () => drawTreemap());
treemap.addEventListener('blur', () => drawTreemap());
element('fold').addEventListener('change', () => { grouping.inside = ''; growTreemap(); });

function drawGrouping() {
  const choose = (by) => () => { grouping.by = by; grouping.inside = ''; drawGrouping(); growTreemap(); };
  buttons('grouping', [['by module', 'modules, and tensors in them', choose('module'), grouping.by === 'module'], ['by kind', 'kinds of memory, and modules in them', choose('kind'), grouping.by === 'kind']]);
}
