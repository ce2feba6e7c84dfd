// Samples of docs/samples in the pages that show them: copied between markers, whole or one part of the file.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the files are; a page names them without this folder. */
export const SAMPLES = 'docs/samples';

const PAGES = '{README.md,docs/**/*.md}';
const MARKED = /^<!-- sample: (\S+)(?: (\S+))? -->\n(.*?)^<!-- end of sample -->$/gms;
const MARKER = /^<!-- (sample: |end of sample)/gm;
/** Lines of a sample that begin and end a part; no page shows them. */
const BEGIN = /^ *# part: (\S+)$/;
const END = /^ *# end of part$/;

/** The pages below `root` that show samples: path, and the text with the samples of today. */
export function pagesWithSamples(root: string): ReadonlyMap<string, string> {
  const pages = globSync(PAGES, { cwd: root }).sort();
  const texts = pages.map((page) => [page, readFileSync(join(root, page), 'utf8')] as const);
  const marked = texts.filter(([, text]) => text.match(MARKER) !== null);
  return new Map(marked.map(([page, text]) => [page, withSamples(page, text, (name) => readSample(root, name))]));
}

/** The page with each sample between its markers. Throws where a marker has no partner, and where a part is missing. */
export function withSamples(page: string, text: string, read: (name: string) => string): string {
  const isWhole = (between: string) => between.match(MARKER) === null;
  const pairs = [...text.matchAll(MARKED)].filter(([, , , between = '']) => isWhole(between));
  if (pairs.length * 2 !== (text.match(MARKER) ?? []).length)
    throw new Error(`${page}: each \`<!-- sample: NAME.yaml -->\` needs an \`<!-- end of sample -->\` after it`);
  return text.replace(MARKED, (_, name: string, part: string | undefined) => {
    const shown = part === undefined ? whole(read(name)) : partOf(read(name), part);
    if (shown === '') throw new Error(`${page}: ${SAMPLES}/${name} has no \`# part: ${part}\``);
    const marker = part === undefined ? name : `${name} ${part}`;
    return `<!-- sample: ${marker} -->\n\`\`\`yaml\n${shown}\`\`\`\n<!-- end of sample -->`;
  });
}

function readSample(root: string, name: string): string {
  const path = join(root, SAMPLES, name);
  if (!existsSync(path)) throw new Error(`a page shows ${SAMPLES}/${name}, which does not exist`);
  return readFileSync(path, 'utf8');
}

const isMarker = (line: string) => BEGIN.test(line) || END.test(line);

const whole = (sample: string) =>
  sample
    .split('\n')
    .filter((line) => !isMarker(line))
    .join('\n');

/** All parts of this name, each as a document of its own and without the indentation of its marker. */
function partOf(sample: string, name: string): string {
  const parts: string[] = [];
  let open: { readonly indent: number; readonly lines: string[] } | undefined;
  for (const line of sample.split('\n')) {
    if (BEGIN.exec(line)?.[1] === name) open = { indent: line.indexOf('#'), lines: [] };
    else if (open !== undefined && END.test(line)) {
      parts.push(open.lines.join(''));
      open = undefined;
    } else open?.lines.push(`${line.slice(open.indent)}\n`);
  }
  return parts.join('---\n');
}
