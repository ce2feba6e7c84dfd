// What do `quantity()`, `semver()` and `format` tell a CEL rule?
import { type Environment, Optional } from '@marcbachmann/cel-js';

/** A quantity as an exact decimal: units × 10^-9. */
class Quantity {
  readonly nano: bigint;
  constructor(text: string) {
    const nano = toNano(text);
    if (nano === undefined) throw new Error(`quantity parse error: ${text}`);
    this.nano = nano;
  }
}

class Semver {
  readonly parts: readonly bigint[];
  readonly pre: readonly string[];
  constructor(text: string) {
    const match = semver.exec(text);
    if (!match) throw new Error(`semver parse error: ${text}`);
    this.parts = match.slice(1, 4).map(BigInt);
    this.pre = match[4]?.split('.') ?? [];
  }
}

const semver =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+[0-9a-zA-Z.-]+)?$/;

class NamedFormat {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}
class Formats {}

const unit = 1_000_000_000n;
const suffixes: Readonly<Record<string, bigint>> = {
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  Pi: 2n ** 50n,
  Ei: 2n ** 60n,
  k: 10n ** 3n,
  M: 10n ** 6n,
  G: 10n ** 9n,
  T: 10n ** 12n,
  P: 10n ** 15n,
  E: 10n ** 18n,
};
const fractions: Readonly<Record<string, bigint>> = { n: unit, u: 1_000_000n, m: 1000n };

const names: Readonly<Record<string, readonly [RegExp, number, string]>> = {
  dns1123Label: [/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 63, 'a lowercase RFC 1123 label'],
  dns1123Subdomain: [
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    253,
    'a lowercase RFC 1123 subdomain',
  ],
  dns1035Label: [/^[a-z]([-a-z0-9]*[a-z0-9])?$/, 63, 'a DNS-1035 label'],
  labelValue: [/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/, 63, 'a label value'],
};

/** Kubernetes' quantity, semver and format libraries. */
export function registerKubernetes(environment: Environment): void {
  const add = (signature: string, handler: (...values: never[]) => unknown) =>
    environment.registerFunction(signature, handler);
  const type = (name: string, ctor: new (...values: never[]) => unknown) =>
    environment.registerType(name, { ctor, fields: {} });
  type('kubernetes.Quantity', Quantity);
  add('isQuantity(string): bool', (text: string) => toNano(text) !== undefined);
  add('quantity(string): kubernetes.Quantity', (text: string) => new Quantity(text));
  add('kubernetes.Quantity.sign(): int', ({ nano }: Quantity) => BigInt(compare(nano, 0n)));
  add('kubernetes.Quantity.isInteger(): bool', ({ nano }: Quantity) => nano % unit === 0n);
  add('kubernetes.Quantity.asInteger(): int', ({ nano }: Quantity) => nano / unit);
  add('kubernetes.Quantity.asApproximateFloat(): double', ({ nano }: Quantity) => Number(nano) / 1e9);
  ordered(add, 'kubernetes.Quantity', (a: Quantity, b: Quantity) => compare(a.nano, b.nano));
  type('kubernetes.Semver', Semver);
  add('isSemver(string): bool', (text: string) => semver.test(text));
  add('semver(string): kubernetes.Semver', (text: string) => new Semver(text));
  for (const [i, part] of ['major', 'minor', 'patch'].entries()) {
    add(`kubernetes.Semver.${part}(): int`, ({ parts }: Semver) => parts[i] ?? 0n);
  }
  ordered(add, 'kubernetes.Semver', compareVersions);
  type('kubernetes.NamedFormat', NamedFormat);
  type('FormatNamespace', Formats);
  environment.registerConstant('format', 'FormatNamespace', new Formats());
  for (const name of Object.keys(names))
    add(`FormatNamespace.${name}(): kubernetes.NamedFormat`, () => new NamedFormat(name));
  add('kubernetes.NamedFormat.validate(string): optional', ({ name }: NamedFormat, text: string) =>
    violation(name, text),
  );
}

type Add = (signature: string, handler: (...values: never[]) => unknown) => void;

function ordered<T>(add: Add, type: string, order: (a: T, b: T) => number): void {
  add(`${type}.compareTo(${type}): int`, (a: T, b: T) => BigInt(order(a, b)));
  add(`${type}.isLessThan(${type}): bool`, (a: T, b: T) => order(a, b) < 0);
  add(`${type}.isGreaterThan(${type}): bool`, (a: T, b: T) => order(a, b) > 0);
}

function toNano(text: string): bigint | undefined {
  const match = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$/.exec(text);
  if (!match) return undefined;
  const [, sign, decimal = '', suffix = ''] = match;
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix);
  if (exponent && Math.abs(Number(exponent[1])) > 30) return undefined;
  const [whole = '', fraction = ''] = decimal.split('.');
  const power = exponent ? Number(exponent[1]) : 0;
  const digits =
    BigInt(`${whole}${fraction}` || '0') * unit * (suffixes[suffix] ?? 1n) * 10n ** BigInt(Math.max(power, 0));
  const divisor = 10n ** BigInt(fraction.length + Math.max(-power, 0)) * (fractions[suffix] ?? 1n);
  const nano = (digits + divisor - 1n) / divisor; // a quantity is rounded up to a nano-unit
  return sign === '-' ? -nano : nano;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareVersions(a: Semver, b: Semver): number {
  const at = a.parts.findIndex((part, i) => part !== b.parts[i]);
  if (at >= 0) return compare(a.parts[at] ?? 0n, b.parts[at] ?? 0n);
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length);
  for (let i = 0; i < Math.max(a.pre.length, b.pre.length); i++) {
    const order = comparePart(a.pre[i], b.pre[i]);
    if (order !== 0) return order;
  }
  return 0;
}

/** SemVer section 11: numbers below words, numbers by value, a shorter list first. */
function comparePart(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  const [left, right] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (left && right) return compare(BigInt(a), BigInt(b));
  if (left !== right) return left ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function violation(name: string, text: string): Optional<string[]> {
  const [pattern, length, words] = names[name] ?? [/^/, Number.POSITIVE_INFINITY, ''];
  const wrong = [
    ...(text.length > length ? [`must be no more than ${length} characters`] : []),
    ...(pattern.test(text) ? [] : [`${words} must match ${pattern.source}`]),
  ];
  return wrong.length === 0 ? Optional.none() : Optional.of(wrong);
}
