// The picture in README.md: who declares, who calls, and what is between them. One SVG for each theme.

interface Theme {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly box: string;
  readonly ours: string;
  readonly accent: string;
}

const THEMES: Readonly<Record<'light' | 'dark', Theme>> = {
  light: { text: '#1f2328', quiet: '#59636e', line: '#818b98', box: '#f6f8fa', ours: '#e7edfd', accent: '#3451b2' },
  dark: { text: '#f0f6fc', quiet: '#b1bac4', line: '#7d8590', box: '#21262d', ours: '#1f2a48', accent: '#8da4f5' },
};

interface Box {
  readonly at: readonly [x: number, y: number, width: number, height: number];
  readonly title: string;
  readonly lines: readonly string[];
  /** A part of Gateway Operator. */
  readonly isOurs?: true;
}

const BOXES: readonly Box[] = [
  { at: [10, 10, 190, 84], title: 'Platform team', lines: ['declares resources with', 'kubectl or GitOps'] },
  {
    at: [250, 10, 190, 84],
    title: 'Admission webhook',
    lines: ['accepts, warns, or rejects', 'with a reason'],
    isOurs: true,
  },
  { at: [490, 10, 190, 84], title: 'API server', lines: ['stores VirtualKeys, Users,', 'Teams, GatewayInstances'] },
  {
    at: [730, 10, 190, 84],
    title: 'Reconciler',
    lines: ['creates keys, starts', 'gateways, repairs drift'],
    isOurs: true,
  },
  { at: [490, 166, 190, 84], title: 'Redis', lines: ['counters that', 'Pods share'] },
  { at: [730, 166, 190, 84], title: 'PostgreSQL', lines: ['limits and every', 'charge'] },
  { at: [10, 322, 190, 84], title: 'Application', lines: ['calls with a key, and the', 'OpenAI or Anthropic SDK'] },
  {
    at: [250, 322, 430, 84],
    title: 'Gateway',
    lines: ['checks key, model and budget before each request,', 'then books what it cost'],
    isOurs: true,
  },
  { at: [730, 322, 190, 84], title: 'Providers', lines: ['OpenAI, Anthropic, Azure,', 'Bedrock, Vertex AI, vLLM'] },
];

/** Arrows: a path, whether it points both ways, and a word with its place. */
const ARROWS: ReadonlyArray<{
  readonly path: string;
  readonly isBoth?: true;
  readonly word?: [number, number, string];
}> = [
  { path: 'M202 52H246' },
  { path: 'M442 52H486' },
  { path: 'M682 52H726', isBoth: true },
  { path: 'M825 96V162', word: [835, 134, 'limits'] },
  { path: 'M202 364H246' },
  { path: 'M682 364H726', isBoth: true },
  { path: 'M585 318V254', isBoth: true, word: [595, 291, 'reserve'] },
  { path: 'M660 318 748 254', isBoth: true, word: [722, 291, 'charge'] },
  { path: 'M345 318V254' },
];

/** Bars of budgets: name, share that is spent, amount. */
const BUDGETS: ReadonlyArray<[name: string, spent: number, amount: string]> = [
  ['key ada', 0.25, '$12 of $50'],
  ['user ada', 0.4, '$80 of $200'],
  ['team web', 0.66, '$660 of $1000'],
];

const DESCRIPTION =
  'A platform team declares resources with kubectl or GitOps. The admission webhook checks them, the API server stores them, the reconciler writes limits to PostgreSQL. An application calls the gateway with a key. The gateway reserves money in the budgets of key, user and team, calls the provider, and books the charge.';

/** The files: paths below the root of the repository, and their texts. */
export function toPictures(): ReadonlyArray<readonly [path: string, text: string]> {
  return Object.entries(THEMES).map(([name, theme]) => [`docs/pictures/overview-${name}.svg`, toSvg(theme)]);
}

function toSvg(theme: Theme): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 930 416" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">
<title>${DESCRIPTION}</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="${theme.line}"/></marker></defs>
${[...BOXES.map((box) => toBox(box, theme)), ...ARROWS.map((arrow) => toArrow(arrow, theme)), toBudgets(theme)].join('\n')}
</svg>
`;
}

function toBox({ at: [x, y, width, height], title, lines, isOurs }: Box, theme: Theme): string {
  const middle = x + width / 2;
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" fill="${isOurs ? theme.ours : theme.box}" stroke="${isOurs ? theme.accent : theme.line}"/>`,
    `<text x="${middle}" y="${y + 27}" text-anchor="middle" fill="${theme.text}" font-size="16" font-weight="600">${title}</text>`,
    ...lines.map(
      (line, n) =>
        `<text x="${middle}" y="${y + 49 + n * 19}" text-anchor="middle" fill="${theme.quiet}">${line}</text>`,
    ),
  ].join('\n');
}

function toArrow({ path, isBoth, word }: (typeof ARROWS)[number], theme: Theme): string {
  const start = isBoth ? ' marker-start="url(#tip)"' : '';
  const arrow = `<path d="${path}" stroke="${theme.line}" stroke-width="1.5" fill="none" marker-end="url(#tip)"${start}/>`;
  if (word === undefined) return arrow;
  return `${arrow}\n<text x="${word[0]}" y="${word[1]}" fill="${theme.quiet}">${word[2]}</text>`;
}

function toBudgets(theme: Theme): string {
  const rows = BUDGETS.map(([name, spent, amount], n) => {
    const y = 192 + n * 24;
    return [
      `<text x="24" y="${y}" fill="${theme.text}">${name}</text>`,
      `<rect x="104" y="${y - 10}" width="190" height="10" rx="5" fill="${theme.line}" fill-opacity=".3"/>`,
      `<rect x="104" y="${y - 10}" width="${190 * spent}" height="10" rx="5" fill="${theme.accent}"/>`,
      `<text x="428" y="${y}" text-anchor="end" fill="${theme.quiet}">${amount}</text>`,
    ].join('\n');
  });
  const frame = `<rect x="10" y="166" width="430" height="84" rx="8" fill="${theme.box}" stroke="${theme.line}" stroke-dasharray="4 3"/>`;
  return [
    frame,
    ...rows,
    `<text x="337" y="291" text-anchor="end" fill="${theme.quiet}">a request must fit in every budget</text>`,
  ].join('\n');
}
