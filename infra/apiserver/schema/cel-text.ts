// Which functions on texts and lists do Kubernetes' CEL rules have beyond the library's?
import type { Environment } from '@marcbachmann/cel-js';
import { goPattern } from './go-pattern.ts';
import { sameJson } from './json.ts';

class Sets {}

/** The string extension, regular expressions, lists and sets; `matchesRE2` stands in for `matches`. */
export function registerText(environment: Environment): void {
  const add = (signature: string, handler: (...values: never[]) => unknown) =>
    environment.registerFunction(signature, handler);
  add('string.matchesRE2(string): bool', (text: string, pattern: string) => goPattern(pattern).test(text));
  add('string.find(string): string', (text: string, pattern: string) => goPattern(pattern).exec(text)?.[0] ?? '');
  add('string.findAll(string): list<string>', (text: string, pattern: string) => findAll(text, pattern, -1));
  add('string.findAll(string, int): list<string>', (text: string, pattern: string, limit: bigint) =>
    findAll(text, pattern, Number(limit)),
  );
  add('string.replace(string, string): string', (text: string, from: string, to: string) => text.split(from).join(to));
  add('string.replace(string, string, int): string', replaceSome);
  add('string.lowerAsciiOnly(): string', (text: string) => text.replace(/[A-Z]+/g, (some) => some.toLowerCase()));
  add('string.upperAsciiOnly(): string', (text: string) => text.replace(/[a-z]+/g, (some) => some.toUpperCase()));
  add('string.charAt(int): string', charAt);
  add('string(google.protobuf.Timestamp): string', (time: Date) => time.toISOString().replace('.000Z', 'Z'));
  add('string(google.protobuf.Duration): string', (duration: { seconds: bigint; nanos: number }) =>
    secondsText(duration),
  );
  add('list.sum(): dyn', (list: never[]) => sum(list));
  add('list.min(): dyn', (list: never[]) => pick(list, (a, b) => a < b));
  add('list.max(): dyn', (list: never[]) => pick(list, (a, b) => a > b));
  add('list.isSorted(): bool', (list: never[]) => list.every((item, i) => i === 0 || (list[i - 1] as never) <= item));
  add('list.indexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findIndex((one) => sameCel(one, item))),
  );
  add('list.lastIndexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findLastIndex((one) => sameCel(one, item))),
  );
  environment.registerType('SetsNamespace', { ctor: Sets, fields: {} });
  environment.registerConstant('sets', 'SetsNamespace', new Sets());
  add('SetsNamespace.contains(list, list): bool', (_: Sets, all: unknown[], some: unknown[]) => containsAll(all, some));
  add(
    'SetsNamespace.equivalent(list, list): bool',
    (_: Sets, a: unknown[], b: unknown[]) => containsAll(a, b) && containsAll(b, a),
  );
  add('SetsNamespace.intersects(list, list): bool', (_: Sets, a: unknown[], b: unknown[]) =>
    a.some((one) => contains(b, one)),
  );
}

function findAll(text: string, pattern: string, limit: number): string[] {
  const expression = goPattern(pattern);
  const found = [...text.matchAll(new RegExp(expression.source, `${expression.flags}g`))].map(([whole]) => whole);
  return limit < 0 ? found : found.slice(0, limit);
}

function replaceSome(text: string, from: string, to: string, limit: bigint): string {
  if (limit < 0n) return text.split(from).join(to);
  const parts = text.split(from);
  const head = parts.splice(0, Number(limit) + 1);
  return parts.length === 0 ? head.join(to) : `${head.join(to)}${from}${parts.join(from)}`;
}

function charAt(text: string, index: bigint): string {
  const characters = [...text];
  if (index < 0n || index > BigInt(characters.length)) throw new Error(`index out of range: ${index}`);
  return characters[Number(index)] ?? '';
}

/** Go's form of a CEL duration: seconds, `90s` or `0.5s`. */
function secondsText({ seconds, nanos }: { seconds: bigint; nanos: number }): string {
  const fraction = String(Math.abs(nanos)).padStart(9, '0').replace(/0+$/, '');
  return `${seconds}${fraction === '' ? '' : `.${fraction}`}s`;
}

function sum(list: readonly (bigint | number)[]): bigint | number {
  if (list.every((item) => typeof item === 'bigint')) return list.reduce((total, item) => total + item, 0n);
  return list.reduce<number>((total, item) => total + Number(item), 0);
}

function pick<T>(list: readonly T[], better: (one: T, other: T) => boolean): T {
  const [first, ...rest] = list;
  if (first === undefined) throw new Error('min/max called on an empty list');
  return rest.reduce((best, one) => (better(one, best) ? one : best), first);
}

function contains(list: readonly unknown[], item: unknown): boolean {
  return list.some((one) => sameCel(one, item));
}

function containsAll(list: readonly unknown[], items: readonly unknown[]): boolean {
  return items.every((item) => contains(list, item));
}

function sameCel(left: unknown, right: unknown): boolean {
  if (typeof left === 'bigint' && typeof right === 'number') return Number(left) === right;
  if (typeof left === 'number' && typeof right === 'bigint') return left === Number(right);
  return sameJson(left, right);
}
