// The tables: modules as a tree in which equal layers are one row, nodes, and what is alive at the chosen moment.

const kMostRows = 2000;
const state = { table: 0, sortBy: -1, descending: true, open: new Set(), lead: -1, fold: true };

// {title, words, columns: [[title, measure, has a sum] …], rows: [[words …, figures …] …], tree}.
const tables = data.tables.map((table) => Object.assign({ tree: table.words[0] === 'module' }, table));
tables.push({ title: 'Alive then', words: ['what', 'kind', 'module', 'line'], columns: [['bytes', 'bytes', true], ['tensors', 'elements', true]], rows: [], alive: true });

// Storages that look alike, in equal layers, are one row.
function aliveRows() {
  const rows = new Map();
  for (const stay of aliveAt(chosen)) {
    const module = folded(stay.module), what = [stay.tensor, stay.op.replace(/^aten::/, '')].filter((text) => text).join(' · ') || '(no operator)';
    const key = [what, stay.category, module, stay.line].join('\u0000');
    if (!rows.has(key)) rows.set(key, [what, kinds[stay.category], module, stay.line, 0, 0]);
    const row = rows.get(key);
    row[4] += stay.size;
    row[5] += 1;
  }
  return [...rows.values()].sort((a, b) => b[4] - a[4]);
}

// --- the tree of modules ----------------------------------------------------------------------------------------
// A node: {path, name, row, children, times}: `times` equal layers, all around it included.
function treeOfRows(table) {
  const nodes = new Map(), words = table.words.length;
  let root = null;
  for (const row of table.rows) {
    const path = row[0] === '(root)' ? '' : row[0], dot = path.lastIndexOf('.');
    const node = { path: path, name: path === '' ? '(root)' : path.slice(dot + 1), row: row, children: [] };
    nodes.set(path, node);
    if (path === '') root = node; else (nodes.get(path.slice(0, Math.max(dot, 0))) || root || node).children.push(node);
  }
  if (!root) return null;
  const signature = (node) => [...node.row.slice(1, words), ...node.row.slice(words)].join() + '(' + node.children.map((c) => c.name + signature(c)).join() + ')';
  const fold = (node, times) => {
    node.times = times;
    const merged = [];
    for (const inner of node.children) {
      const last = merged[merged.length - 1];
      const alike = state.fold && last && /^\d+$/.test(inner.name) && /^\d+$/.test(last.first) && last.signature === (inner.signature = signature(inner));
      if (!alike) { inner.first = inner.last = inner.name; inner.layers = 1; inner.signature = inner.signature || signature(inner); merged.push(inner); continue; }
      last.last = inner.name;
      ++last.layers;
    }
    for (const inner of merged) {
      if (inner.layers > 1) inner.name = inner.first + '…' + inner.last + ' ×' + inner.layers;
      fold(inner, times * inner.layers);
    }
    node.children = merged;
  };
  fold(root, 1);
  return root;
}

// Opens the levels that say something at first sight: the root, and modules that are alone in theirs.
function openFirst(node, depth) {
  state.open.add(node.path);
  const inner = node.children.filter((child) => child.children.length > 0);
  if (depth < 1 || inner.length === 1) for (const child of inner) openFirst(child, inner.length === 1 ? depth : depth + 1);
}

// The figures of a row as they are shown: sums over equal layers.
const figureOf = (table, row, k, times) => { const value = row[table.words.length + k]; return table.columns[k][2] ? value * times : value; };

// [row, depth, times, node or null] of what is shown, in its order.
function shownRows(table) {
  const words = table.words.length, needle = element('search').value.toLowerCase().split(/\s+/).filter((part) => part);
  const compare = (a, b) => { const x = a[state.sortBy], y = b[state.sortBy], order = typeof x === 'number' ? x - y : String(x).localeCompare(String(y)); return state.descending ? -order : order; };
  if (table.tree && !needle.length) {
    const result = [], walk = (node, depth) => {
      result.push([node.row, depth, node.times, node]);
      if (!state.open.has(node.path)) return;
      for (const inner of state.sortBy < 0 ? node.children : node.children.slice().sort((a, b) => compare(a.row, b.row))) walk(inner, depth + 1);
    };
    if (table.root) walk(table.root, 0);
    return result;
  }
  let rows = table.alive ? aliveRows() : table.rows;
  if (needle.length) rows = rows.filter((row) => { const text = row.slice(0, words).join(' ').toLowerCase(); return needle.every((part) => text.includes(part)); });
  if (state.sortBy >= 0) rows = rows.slice().sort(compare);
  return rows.map((row) => [row, 0, 1, null]);
}

function nameCell(table, row, depth, node) {
  const cell = make('td', 'word name');
  cell.title = node ? node.path || '(root)' : row[0];
  cell.style.paddingLeft = 6 + 14 * depth + 'px';
  if (!node || !node.children.length) { cell.append(node ? make('span', 'twisty', '') : '', node ? node.name : row[0]); return cell; }
  const open = state.open.has(node.path), button = make('button', 'twisty', open ? '▾' : '▸');
  button.setAttribute('aria-expanded', String(open));
  button.setAttribute('aria-label', (open ? 'close ' : 'open ') + (node.path || '(root)'));
  button.dataset.path = node.path;
  button.onclick = () => {
    if (open) state.open.delete(node.path); else state.open.add(node.path);
    drawTable();
    const again = [...element('table').querySelectorAll('button.twisty')].find((b) => b.dataset.path === node.path);
    if (again) again.focus();
  };
  cell.append(button, node.name);
  return cell;
}

function drawHead(table, columns) {
  const words = table.words.length, head = make('tr');
  [...table.words.map((title, i) => [title, i, i === 0 ? 'word name' : 'word']), ...columns.map((k) => [table.columns[k][0], words + k, k === state.lead ? 'lead' : ''])].forEach(([title, i, className]) => {
    const button = make('button', '', title + (i === state.sortBy ? (state.descending ? ' ▾' : ' ▴') : ''));
    button.onclick = () => { state.descending = state.sortBy === i ? !state.descending : i >= words; state.sortBy = i; drawTable(); };
    const th = make('th', className, button);
    if (i === state.sortBy) th.setAttribute('aria-sort', state.descending ? 'descending' : 'ascending');
    head.append(th);
  });
  element('table').tHead.replaceChildren(head);
}

function drawFoot(table, columns, rows) {
  const words = table.words.length, sum = (k) => (table.tree && rows.length && rows[0][3] ? rows[0][0][words + k] : rows.reduce((all, [row, , times]) => all + figureOf(table, row, k, times), 0));
  const cells = [make('td', 'word name', table.tree && rows.length && rows[0][3] ? 'the whole model' : 'sum of ' + rows.length + ' rows'), ...table.words.slice(1).map(() => make('td', 'word'))];
  for (const k of columns) cells.push(make('td', k === state.lead ? 'lead' : '', table.columns[k][2] || (table.tree && rows.length && rows[0][3]) ? shown[table.columns[k][1]](sum(k)) : ''));
  element('table').tFoot.replaceChildren(rows.length ? make('tr', '', ...cells) : '');
}

function drawTable() {
  const table = tables[state.table], words = table.words.length, rows = shownRows(table);
  const all = table.alive ? rows.map((entry) => entry[0]) : table.rows;
  // Columns that are zero all over say nothing.
  const columns = table.columns.map((_, k) => k).filter((k) => all.some((row) => row[words + k] !== 0));
  if (!columns.includes(state.lead)) state.lead = columns.find((k) => table.columns[k][1] === 'bytes') ?? columns[0] ?? -1;
  const most = columns.map((k) => all.reduce((max, row) => Math.max(max, row[words + k]), 0));
  drawHead(table, columns);
  const body = document.createDocumentFragment();
  for (const [row, depth, times, node] of rows.slice(0, kMostRows)) {
    const cells = [nameCell(table, row, depth, node)];
    for (let i = 1; i < words; ++i) { const cell = make('td', 'word', row[i]); cell.title = row[i]; cells.push(cell); }
    columns.forEach((k, i) => {
      const value = figureOf(table, row, k, times), cell = barCell(value === 0 ? '·' : shown[table.columns[k][1]](value), most[i] > 0 ? value / most[i] : 0);
      if (k === state.lead) cell.classList.add('lead');
      cells.push(cell);
    });
    body.append(make('tr', '', ...cells));
  }
  element('table').tBodies[0].replaceChildren(body);
  drawFoot(table, columns, rows);
  element('count').textContent = rows.length + (table.tree || table.alive ? ' rows' : ' of ' + all.length + ' rows') + (rows.length > kMostRows ? ', the first ' + kMostRows + ' shown' : '') + (table.alive ? ': ' + momentText(chosen) : '');
  element('figure').replaceChildren(...columns.map((k) => { const option = make('option', '', table.columns[k][0] + (table.columns[k][1] === 'bytes' ? '' : ', ' + table.columns[k][1])); option.value = k; option.selected = k === state.lead; return option; }));
}
element('figure').addEventListener('change', () => { state.lead = Number(element('figure').value); drawTable(); });

function chooseTable(i) {
  state.table = i;
  state.sortBy = state.lead = -1;
  drawTabs();
  drawTable();
}
function drawTabs() {
  buttons('tabs', tables.map((table, i) => [table.title, 'show this table', () => chooseTable(i), i === state.table]));
}
element('search').addEventListener('input', drawTable);

for (const table of tables) {
  if (!table.tree) continue;
  table.root = treeOfRows(table);
  if (table.root) openFirst(table.root, 0);
}
