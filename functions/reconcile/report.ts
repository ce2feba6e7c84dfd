// What did a run see and do? The answer to whoever asked for it, and the lines of a dry run.
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { KindName } from '#crds/kinds.ts';
import type { Deed } from './act.ts';
import { type Action, type ActionName, type Sign, signOf } from './action.ts';
import type { CertificateAction, CertificateReport } from './certificates/keep.ts';
import type { Objects } from './observe/objects.ts';
import { type Guarded, toGuardedMessage } from './plan/guard.ts';
import type { Unconverged } from './unconverged.ts';

export interface Report {
  /** Objects by kind. */
  readonly observed: Readonly<Partial<Record<KindName, number>>>;
  /** What was done, by action. */
  readonly actions: Readonly<Partial<Record<ActionName, number>>>;
  readonly failed: Readonly<Partial<Record<ActionName | 'Observe', number>>>;
  /** Removals that were too many to be plausible. Absent: none. */
  readonly guarded?: ReadonlyArray<Guarded>;
  /** Databases that did not answer, how often in a row, and until when only sweeps ask them. Absent: none. */
  readonly away?: ReadonlyArray<AwayRow>;
  /** Keys that changed and whose turn comes with one of the next runs: too many changed at once. Absent: none. */
  readonly later?: number;
  /** Objects that change without another request: ask again while there are any. Absent: none. */
  readonly underWay?: number;
  /** Steps in the life of admission's certificate. Absent: none. */
  readonly certificate?: CertificateReport;
}

export interface PlannedRow {
  /** `Guarded`: nothing is done, for it would remove too much. `Paused`: nothing is done, for somebody wants it so. */
  readonly action: ActionName | CertificateAction | 'Guarded' | 'Paused';
  /** One of ours, or what holds a certificate. */
  readonly kind: string;
  /** Empty: of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

/** A row as people read it: something comes, changes, goes, is guarded, or stays as it is. */
export interface PlannedLine extends PlannedRow {
  readonly sign: Sign | '!' | ' ';
}

/** What came of one part of a run. */
export interface PartOutcome {
  readonly deeds: ReadonlyArray<Deed>;
  readonly guarded: ReadonlyArray<Guarded>;
  /** Instances that could not be looked at. A spec that is none is told in its status: that is no failure of the run. */
  readonly unobserved: number;
  readonly away: ReadonlyArray<AwayRow>;
  readonly later: number;
  readonly unconverged: Unconverged;
  readonly underWay: number;
}

interface AwayRow {
  readonly instance: string;
  readonly failures: number;
  /** RFC 3339. */
  readonly until: string;
}

export interface Outcome {
  readonly observed: Report['observed'];
  readonly parts: ReadonlyArray<PartOutcome>;
  readonly certificate: CertificateReport | undefined;
  /** Objects that were named and are not stored yet. */
  readonly awaited: number;
}

export function toReport({ observed, parts, certificate, awaited }: Outcome): Report {
  const deeds = parts.flatMap((part) => part.deeds);
  const guarded = parts.flatMap((part) => part.guarded);
  const failed = count(deeds.filter(({ ended }) => ended === 'failed').map(({ action }) => action.action));
  const away = parts.flatMap((part) => part.away);
  const later = parts.reduce((sum, part) => sum + part.later, 0);
  const underWay = parts.reduce((sum, part) => sum + part.underWay, awaited);
  const unobserved = parts.reduce((sum, part) => sum + part.unobserved, 0);
  return {
    observed,
    actions: count(deeds.filter(({ ended }) => ended === 'done').map(({ action }) => action.action)),
    failed: { ...failed, ...(unobserved === 0 ? {} : { Observe: unobserved }) },
    ...(guarded.length === 0 ? {} : { guarded }),
    ...(away.length === 0 ? {} : { away }),
    ...(later === 0 ? {} : { later }),
    ...(underWay === 0 ? {} : { underWay }),
    ...(certificate === undefined || isQuiet(certificate) ? {} : { certificate }),
  };
}

const isQuiet = ({ actions, failed }: CertificateReport): boolean => actions.length === 0 && failed === undefined;

/** Kinds of which there is none are left out. */
export function countObserved({ instances, keys, users, teams, malformed }: Objects): Report['observed'] {
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

export function toLine(planned: Action): PlannedLine {
  const { action, kind, namespace, name, why } = planned;
  return { sign: signOf(planned), action, kind, namespace, name, why };
}

/** A new certificate comes. */
export const toCertificateLine = (row: PlannedRow): PlannedLine => ({ sign: '+', ...row });

export function toGuardedLine(guarded: Guarded): PlannedLine {
  const [namespace = '', name = ''] = guarded.instance.split('/');
  return { sign: '!', action: 'Guarded', kind: 'GatewayInstance', namespace, name, why: toGuardedMessage(guarded) };
}

export function toPausedLine({ metadata: { namespace, name } }: GatewayInstance): PlannedLine {
  return { sign: ' ', action: 'Paused', kind: 'GatewayInstance', namespace, name, why: 'nothing but deletions' };
}

/** One line per action: `+` something comes, `~` changes, `-` goes, `!` is guarded; indented: a paused instance. */
export function toText(rows: ReadonlyArray<PlannedLine>): string {
  if (rows.length === 0) return 'Nothing to do: everything is as it should be.\n';
  return rows
    .map((row) => {
      const at = row.namespace === '' ? row.name : `${row.namespace}/${row.name}`;
      if (row.action === 'Paused') return `${row.sign} ${row.kind} ${at} is paused: ${row.why}\n`;
      return `${row.sign} ${row.action} ${row.kind} ${at}: ${row.why}\n`;
    })
    .join('');
}
