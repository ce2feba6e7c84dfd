// The reference of log lines: docs/reference/log.md, from the calls in the source that write them.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './imports.ts';
import { WHEN } from './log-lines.ts';

interface Line {
  readonly level: string;
  readonly message: string;
}

/** Folders of the source, and the function that writes their lines. The first that matches a file decides. */
const WRITERS: ReadonlyArray<readonly [RegExp, string]> = [
  [/^functions\/gateway\//, 'Gateway'],
  [/^functions\/core\/ledger\/|^infra\/adapters\/(journal|redis)\//, 'Ledger and Redis'],
  [/^functions\/reconcile\//, 'Reconciler'],
  [/^infra\/adapters\/postgres\//, 'PostgreSQL'],
  [/^infra\/runtime\/|^infra\/platforms\/kubernetes\//, 'Start, stop and the surroundings of each function'],
];

/** `log.warn('…'`, `deps.log?.error(NAME`; a level that is computed (`log[level]('request'`) is info, warn or error. */
const CALL =
  /\b(?:\w*[lL]og(?:\(\w+\))?|out)\??(?:\.(info|warn|error)|\[\w+\])\(\s*(?:(['`])((?:(?!\2).)+)\2|(message|[A-Z_]+),)/g;
/** Rows of a table of messages: `{ level: 'warn', message: '…', recovery: '…' }`. */
const ROW = /level: '(\w+)',\s*message:\s*'([^']+)'(?:,\s*metric: \w+)?(?:,\s*recovery: '([^']+)')?/g;

export function toLogPage(): string {
  const shown = new Set<string>();
  const files = globSync('{functions,infra/{adapters,runtime,platforms/kubernetes}}/**/*.ts', { cwd: ROOT }).sort();
  const sources = files.filter((path) => !path.includes('/test/'));
  const sections = WRITERS.map(([, writer]) => {
    const own = sources.filter((path) => WRITERS.find(([folder]) => folder.test(path))?.[1] === writer);
    const lines = own.flatMap((path) => linesIn(readFileSync(join(ROOT, path), 'utf8')));
    for (const { message } of lines) shown.add(message);
    return `\n## ${writer}\n\n| message | level | when |\n|---|---|---|\n${[...new Set(lines.map(toRow))].sort().join('\n')}\n`;
  });
  const unused = Object.keys(WHEN).filter((message) => !shown.has(message));
  if (unused.length > 0) throw new Error(`log-lines.ts has rows of no log line: ${unused.join('; ')}`);
  return `# Log lines

Generated from the source and from \`infra/tools/log-lines.ts\` by \`npm run generate\`. Each line is one JSON object on standard output:

<!-- not run: an example of a line -->
\`\`\`json
{"time":"2026-11-21T12:00:00.000Z","level":"warn","message":"the connection to the counter store ended, and is opened again","function":"gateway","why":"connect ECONNREFUSED"}
\`\`\`

\`why\` has the cause. \`LOG_LEVEL\` ([environment](environment.md)) chooses the lowest level that is written. \`…\` stands for a name or a number. No line has
a prompt, a reply or a key value. [Alerts](../operate/alerts.md) explain the lines that need a person.

- **info**: normal work, and the end of a failure.
- **warn**: a failure that is repeated or repaired without you, unless it continues.
- **error**: a failure that a person should look at.
${sections.join('')}`;
}

function toRow({ level, message }: Line): string {
  const when = WHEN[message];
  if (when === undefined) throw new Error(`log-lines.ts has no row that says when this line appears: ${message}`);
  return `| ${message.replaceAll('|', '\\|')} | ${level} | ${when} |`;
}

function linesIn(text: string): ReadonlyArray<Line> {
  const rows = [...text.matchAll(ROW)].flatMap(([, level = '', message = '', recovery]) => [
    { level, message },
    ...(recovery === undefined ? [] : [{ level: 'info', message: recovery }]),
  ]);
  const calls = [...text.matchAll(CALL)].flatMap(([, level = 'info, warn or error', , literal, name = '']) => {
    const message = literal ?? constantIn(text, name);
    // A line must not be left out: a name without a text has a table.
    if (message === undefined && rows.length === 0) throw new Error(`no text of ${name}`);
    return message === undefined ? [] : [{ level, message }];
  });
  return [...calls, ...rows].map(({ level, message }) => ({ level, message: message.replaceAll(/\$\{[^}]*\}/g, '…') }));
}

/** The text of a constant, or of the first one of that name. */
function constantIn(text: string, name: string): string | undefined {
  return new RegExp(`const ${name} =[^;]*?(['\`])((?:(?!\\1).)+)\\1`).exec(text)?.[2];
}
