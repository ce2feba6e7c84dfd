// What did a run see and do? The answer to whoever asked for it, and the lines of a dry run.

import type { Deed } from './act.ts';
import { type Action, type ActionName, SIGNS } from './action.ts';
import type { CertificateReport } from './certificates/keep.ts';
import { CERTIFICATE_SIGNS, type CertificateAction } from './certificates/plan.ts';
import type { Held } from './plan/hold.ts';
import type { OwnKind, World } from './world.ts';

export interface Report {
  /** Objects by kind. */
  readonly observed: Readonly<Partial<Record<OwnKind, number>>>;
  /** What was done, by action. */
  readonly actions: Readonly<Partial<Record<ActionName, number>>>;
  readonly failed: Readonly<Partial<Record<ActionName | 'Observe', number>>>;
  /** Removals that were too many to be plausible. Absent: none. */
  readonly held?: ReadonlyArray<Held>;
  /** Steps in the life of admission's certificate. Absent: none. */
  readonly certificate?: CertificateReport;
}

export interface PlannedRow {
  readonly action: ActionName | CertificateAction['action'];
  /** One of ours, or what holds a certificate. */
  readonly kind: string;
  /** Empty: of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

export function toReport(
  world: World,
  seen: Report['observed'],
  deeds: ReadonlyArray<Deed>,
  held: ReadonlyArray<Held>,
): Report {
  const failed = count(deeds.filter(({ ended }) => ended === 'failed').map(({ action }) => action.action));
  // A spec that is none is told in its status: that is no failure of the run.
  const unobserved = [...world.unobserved.keys()].filter(
    (path) => !world.malformed.has(`GatewayInstance/${path}`),
  ).length;
  return {
    observed: seen,
    actions: count(deeds.filter(({ ended }) => ended === 'done').map(({ action }) => action.action)),
    failed: { ...failed, ...(unobserved === 0 ? {} : { Observe: unobserved }) },
    ...(held.length === 0 ? {} : { held }),
  };
}

/** Kinds of which there is none are left out. */
export function countObserved(world: World): Report['observed'] {
  const { instances, keys, users, teams, malformed } = world;
  const strays = [...malformed.values()].map(({ kind }) => kind);
  const all = { GatewayInstance: instances.size, VirtualKey: keys.size, User: users.size, Team: teams.size };
  return Object.fromEntries(
    Object.entries(all)
      .map(([kind, size]) => [kind, size + strays.filter((stray) => stray === kind).length] as const)
      .filter(([, size]) => size > 0),
  );
}

function count<Name extends string>(names: ReadonlyArray<Name>): Partial<Record<Name, number>> {
  const groups = Map.groupBy(names, (name) => name);
  const entries = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, all]) => [name, all.length]);
  return Object.fromEntries(entries);
}

export function toRow({ action, kind, namespace, name, why }: Action): PlannedRow {
  return { action, kind, namespace, name, why };
}

const ALL_SIGNS = { ...SIGNS, ...CERTIFICATE_SIGNS };

/** One line per action: `+` something comes, `~` changes, `-` goes. */
export function toText(rows: ReadonlyArray<PlannedRow>): string {
  if (rows.length === 0) return 'Nothing to do: everything is as it should be.\n';
  return rows
    .map((row) => {
      const at = row.namespace === '' ? row.name : `${row.namespace}/${row.name}`;
      return `${ALL_SIGNS[row.action]} ${row.action} ${row.kind} ${at}: ${row.why}\n`;
    })
    .join('');
}
