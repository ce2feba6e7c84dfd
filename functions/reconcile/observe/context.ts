// The context of observing: the platform, the scope, and what a process remembers between runs.
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Registry } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import type { ReconcileDeps } from '../deps.ts';
import type { Scope } from '../scope.ts';
import { PARTS } from '../workload/parts.ts';
import type { Path, World } from '../world.ts';

/** `Draft`: the world while it is observed. */
export interface Observed {
  readonly world: Draft;
  readonly links: Map<Path, Link>;
}

type Mutable<T> = T extends ReadonlyMap<infer K, infer V> ? Map<K, V> : T;
export type Draft = { -readonly [Name in keyof World]: Mutable<World[Name]> };

/** The database of an instance. Connections, which hold passwords, stay out of the world. */
export interface Link {
  readonly uid: string;
  readonly registry: Registry & Books;
}

/** What a process remembers between runs; correct when empty, lives as long as the process. */
export interface Memory {
  /** Of an instance, by uid: where its database last was, so that deleting it together with its Secrets can still close it. */
  readonly databases: Map<string, { readonly registry: Registry & Books; readonly where: string }>;
  /** The same of its store, whose keys go with it. */
  readonly stores: Map<string, StoreConnection>;
  /** By uid of the instance whose database did not answer: until then only sweeps ask it. */
  readonly away: Map<string, { readonly until: Millis; readonly message: string }>;
  /** The uid of the namespace kube-system names the cluster where a database is shared with others. */
  cluster?: string | undefined;
}

export const createMemory = (): Memory => ({ databases: new Map(), stores: new Map(), away: new Map() });

export interface ObserveContext {
  readonly deps: ReconcileDeps;
  readonly memory: Memory;
  readonly now: Millis;
  /** Whether the run looks everywhere: then at databases too that were away a moment ago. */
  readonly isSweep: boolean;
  /** Whether nothing may be written, not even bookings. */
  readonly isDry: boolean;
  /** Whether the cluster serves Knative; a text says why that could not be found out. Asked once in a run. */
  offersKnative(): Promise<boolean | string>;
}

export function createObserveContext(
  deps: ReconcileDeps,
  memory: Memory,
  scope: Scope,
  isDry: boolean,
): ObserveContext {
  let knative: Promise<boolean | string> | undefined;
  const offersKnative = () => {
    knative ??= deps.cluster.serves(PARTS.KnativeService).catch(reasonOf);
    return knative;
  };
  return { deps, memory, now: deps.clock.now(), isSweep: scope.look === 'everywhere', isDry, offersKnative };
}

/** What names this cluster; undefined where that cannot be read. */
export async function clusterOf({ deps: { cluster, log }, memory }: Pick<ObserveContext, 'deps' | 'memory'>) {
  try {
    memory.cluster ??= (await cluster.get(NAMESPACES, undefined, 'kube-system'))?.metadata.uid;
  } catch (error) {
    log.warn('the cluster could not be told from others', { why: reasonOf(error) });
  }
  return memory.cluster;
}

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace' };
