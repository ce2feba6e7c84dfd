// Which fields are accepted but have no effect yet?
import { usual } from './accepted.ts';
import type { KindName } from './resources.ts';

/**
 * Fields below `spec` that nothing acts on; a field stands for everything below it, `field=Value` for one value of it.
 * A test walks all fields of all specs: one that is neither here nor read by the functions fails, and so does one that is both.
 */
export const notYetActedOn: Readonly<Record<KindName, readonly string[]>> = {
  GatewayInstance: [],
  VirtualKey: [],
  User: [],
  Team: [],
};

export interface Unacted {
  /** `spec.models[0].gatewayParams.rpm`. */
  readonly path: string;
  readonly value: unknown;
}

/** What a spec asks for in vain: listed fields that are there and not at their default. Total: any JSON may be passed. */
export function unactedIn({ kind }: Kinded, spec: unknown, entries = notYetActedOn[kind]): readonly Unacted[] {
  return routesOf(kind, entries).flatMap(({ top, below, usual, value }) => {
    const there = member(spec, top);
    if (there === undefined) return [];
    return find({ value: there, usual, path: `spec.${top}` }, below).filter(
      (one) => value === undefined || one.value === value,
    );
  });
}

interface Kinded {
  readonly kind: KindName;
}

interface Route {
  readonly top: string;
  readonly below: readonly string[];
  /** What the schema makes of the member where it is left out. */
  readonly usual: unknown;
  /** The one value that the entry is about, if it is not about all. */
  readonly value: string | undefined;
}

/** Entries and kinds are constants: they are taken apart once. */
const routes = new WeakMap<readonly string[], ReadonlyMap<KindName, readonly Route[]>>();

function routesOf(kind: KindName, entries: readonly string[]): readonly Route[] {
  const known = routes.get(entries)?.get(kind);
  if (known !== undefined) return known;
  const made = entries.map((entry): Route => {
    const [path = '', value] = entry.split('=');
    const [top = '', ...below] = path.replaceAll('[]', '.*').split('.');
    return { top, below, usual: usual[kind][top], value };
  });
  routes.set(entries, new Map([...(routes.get(entries) ?? []), [kind, made]]));
  return made;
}

interface Place extends Unacted {
  readonly usual: unknown;
}

/** `below` from the step `at` on. Nearly always there is nothing there, so no path is written on the way. */
function find({ value, usual, path }: Place, below: readonly string[], at = 0): readonly Unacted[] {
  const step = below[at];
  if (value === undefined || value === null) return NONE;
  if (step === undefined) return isSame(value, usual) ? NONE : [{ path, value }];
  if (step !== '*') {
    const child = member(value, step);
    if (child === undefined) return NONE;
    return find({ value: child, usual: member(usual, step), path: `${path}.${step}` }, below, at + 1);
  }
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  return entries.flatMap((entry, index) =>
    find({ value: entry, usual: undefined, path: `${path}[${index}]` }, below, at + 1),
  );
}

const NONE: readonly Unacted[] = [];

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;

/** Whether every member of the value is as usual; an empty map or list asks for nothing. */
function isSame(value: unknown, usual: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === usual;
  return Object.entries(value).every(([name, child]) => isSame(child, member(usual, name)));
}
