'use strict';
/*
 * Makes the tables of docs/reference/node.md from index.d.ts: what stands between its two markers. `node docs/reference.js`
 * prints the whole page anew; the tests compare. A declaration is a line, behind a comment of one line.
 */
const fs = require('fs');
const path = require('path');

const DECLARATIONS = path.join(__dirname, '..', 'index.d.ts');
const PAGE = path.join(__dirname, '..', '..', '..', 'docs', 'reference', 'node.md');
const BEGIN = '<!-- declarations: begin -->\n';
const END = '<!-- declarations: end -->\n';

const COMMENT = /^\s*\/\*\* (.*) \*\/$/;
const GROUP = /^export (?:declare )?(interface|class) (\w+)/;
const SINGLE = /^export (?:const|type|function) (.*?);?$/;
const MEMBER = /^ {2}(?!private|\/\*\*|\})(\S.*?);$/;

/* {title, comment, rows: [declaration, comment]} for the module and each of its interfaces and classes. */
function groupsOf(text) {
  const module = {title: 'Module', comment: '', rows: []};
  const groups = [module];
  let group = module;
  let comment = '';
  for (const line of text.split('\n')) {
    const said = COMMENT.exec(line);
    if (said) {
      comment = said[1];
      continue;
    }
    const opened = GROUP.exec(line);
    const single = SINGLE.exec(line);
    const member = MEMBER.exec(line);
    if (opened) {
      group = {title: opened[2], comment, rows: []};
      groups.push(group);
    } else if (single) {
      module.rows.push([single[1], comment]);
    } else if (member && group !== module) {
      group.rows.push([member[1], comment]);
    } else if (line === '}') {
      group = module;
    }
    comment = '';
  }
  return groups;
}

const cell = (text) => text.replace(/\|/g, '\\|');
/* Code in a cell: a pipe would end it even there. */
const code = (text) => `\`${text.replace(/ \| /g, ' or ')}\``;

function tables() {
  const parts = groupsOf(fs.readFileSync(DECLARATIONS, 'utf8')).map(({title, comment, rows}) => {
    const head = comment === '' ? `## ${title}\n` : `## ${title}\n\n${wrapped(comment)}\n`;
    const lines = rows.map(([declaration, said]) => `| ${code(declaration)} | ${cell(said)} |`);
    return `${head}\n| declaration | |\n|---|---|\n${lines.join('\n')}\n`;
  });
  return `\n${parts.join('\n')}\n`;
}

/* Prose in lines of at most 120 characters. */
function wrapped(text) {
  const WIDTH = 120;
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.length - 1;
    if (lines[last].length + word.length + 1 > WIDTH) lines.push(word);
    else lines[last] += (lines[last] === '' ? '' : ' ') + word;
  }
  return lines.join('\n');
}

/* The page as it is to be. */
function page() {
  const text = fs.readFileSync(PAGE, 'utf8');
  const begin = text.indexOf(BEGIN) + BEGIN.length;
  return text.slice(0, begin) + tables() + text.slice(text.indexOf(END));
}

/* The names of all members of a class, for the tests. */
function membersOf(title) {
  const group = groupsOf(fs.readFileSync(DECLARATIONS, 'utf8')).find((one) => one.title === title);
  return group.rows.map(([declaration]) => /^(?:readonly )?(\[[^\]]+\]|\w+)/.exec(declaration)[1]);
}

module.exports = {page, membersOf, PAGE};
if (require.main === module) process.stdout.write(page());
