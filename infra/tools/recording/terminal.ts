// An animated SVG of a terminal: CSS only, no script. Text can be selected; without motion it shows the last screen.

export interface Line {
  /** Seconds from the start of the recording. */
  readonly at: number;
  readonly text: string;
  readonly isCommand?: boolean;
}

export const COLUMNS = 100;
const ROWS = 26;
const HEIGHT = 19;
const PAD = 16;
const WIDTH = COLUMNS * 8.45 + 2 * PAD;
/** Seconds for which the last screen stays before the animation starts again. */
const REST = 8;

export function toRecording(lines: readonly Line[], title: string): string {
  const seconds = (lines.at(-1)?.at ?? 0) + REST;
  const percent = (at: number) => `${((100 * at) / seconds).toFixed(2)}%`;
  const scroll = (n: number) => `transform:translateY(${-Math.max(0, n + 1 - ROWS) * HEIGHT}px)`;
  const shows = lines.map(({ at }, n) => `@keyframes l${n}{0%{opacity:0}${percent(at)}{opacity:1}}`);
  // Of several lines at the same time, the last one decides how far the screen has scrolled.
  const scrolls = new Map(lines.map(({ at }, n) => [percent(at), scroll(n)]));
  const texts = lines.map(({ text, isCommand }, n) => {
    const y = PAD + 14 + n * HEIGHT;
    return `<text x="${PAD}" y="${y}"${isCommand ? ' class="c"' : ''} style="animation-name:l${n}">${toXml(text)}</text>`;
  });
  const height = ROWS * HEIGHT + 2 * PAD;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${toXml(title)}</title>
<style>
svg{color-scheme:light dark;--back:#f6f8fa;--text:#59636e;--command:#1f2328}
@media (prefers-color-scheme:dark){svg{--back:#161b22;--text:#b1bac4;--command:#f0f6fc}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:var(--text)}
.c{fill:var(--command);font-weight:600}
#screen{${scroll(lines.length - 1)}}
@media (prefers-reduced-motion:no-preference){
text,#screen{animation:s ${seconds.toFixed(1)}s step-end infinite}
@keyframes s{0%{transform:none}${[...scrolls].map(([at, rule]) => `${at}{${rule}}`).join('')}100%{${scroll(lines.length - 1)}}}
${shows.join('\n')}
}
</style>
<rect width="100%" height="100%" rx="8" fill="var(--back)"/>
<clipPath id="edge"><rect y="${PAD / 2}" width="100%" height="${height - PAD}"/></clipPath>
<g clip-path="url(#edge)"><g id="screen">
${texts.join('\n')}
</g></g>
</svg>
`;
}

/** Lines of a typed command, with prompts. */
export function toCommandLines(command: string): readonly string[] {
  return command.split('\n').flatMap((line, n) => wrap(`${n === 0 ? '$' : '>'} ${line}`));
}

/** A line of the terminal, cut where the terminal would. */
export function wrap(text: string): readonly string[] {
  return text.match(new RegExp(`.{1,${COLUMNS}}`, 'g')) ?? [''];
}

const toXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
