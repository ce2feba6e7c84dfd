// Which JavaScript expression matches what a Go expression (RE2) matches?

const compiled = new Map<string, RegExp>();

/** A pattern of a CRD or a CEL `matches`, which RE2 reads. Throws `SyntaxError` for one that cannot be read. */
export function goPattern(pattern: string): RegExp {
  const known = compiled.get(pattern);
  if (known) return known;
  const expression = compile(pattern);
  compiled.set(pattern, expression);
  return expression;
}

// Looking around and back is what RE2 cannot do, and what makes patterns slow.
const perlOnly = /\\.|\(\?(?:<?[=!]|>)/gs;

function compile(pattern: string): RegExp {
  for (const [found] of pattern.matchAll(perlOnly)) {
    if (found.startsWith('(') || /^\\[1-9]$/.test(found))
      throw new SyntaxError(`invalid or unsupported Perl syntax: \`${found}\``);
  }
  const flags = /^\(\?([imsU]+)\)/.exec(pattern);
  const body = flags ? pattern.slice(flags[0].length) : pattern;
  const translated = body
    .replace(/\\z/g, '$(?![\\s\\S])')
    .replace(/\\A/g, '(?<![\\s\\S])')
    .replace(/\(\?P</g, '(?<')
    .replace(/\[\[:(\w+):\]\]/g, (whole, name: string) => (classes[name] ? `[${classes[name]}]` : whole))
    .replace(/\[:(\w+):\]/g, (whole, name: string) => classes[name] ?? whole);
  const asked = new Set(['u', ...(flags?.[1] ?? '').replace('U', '')]);
  try {
    return new RegExp(translated, [...asked].join(''));
  } catch {
    // Escapes that RE2 takes and the `u` flag refuses (`\-`, `\/` outside a class).
    return new RegExp(translated, [...asked].filter((flag) => flag !== 'u').join(''));
  }
}

const classes: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  digit: '0-9',
  lower: 'a-z',
  upper: 'A-Z',
  space: '\\t\\n\\v\\f\\r ',
  punct: '!-\\/:-@\\[-`{-~',
  xdigit: '0-9A-Fa-f',
  word: '0-9A-Za-z_',
};
