// Can an instance serve, and if not, why? Judged from spec, Secrets, database and store, never by calling an upstream (DESIGN 10).
import { LARGEST_SNAPSHOT } from '#core/compile.ts';
import type { Judgement } from '#core/conditions.ts';
import { type Finding, toProblem } from '#core/finding.ts';
import { noModels, sharedCredentials } from '#core/rules/instance.ts';
import type { GatewayInstanceStatus } from '#crds/gateway-instance.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import type { Problem, Reached } from '../problem.ts';
import type { InstanceView } from '../world.ts';
import { judgeWorkload, type Workload } from './judge-workload.ts';

export interface InstanceJudgement {
  readonly ready: Problem & { readonly ok: boolean };
  readonly conditions: ReadonlyArray<Judgement>;
  readonly models: NonNullable<GatewayInstanceStatus['models']>;
  readonly workload: Workload;
  /** The `modelName`s of its entries. */
  readonly served: ReadonlySet<string>;
}

export function judgeInstance(view: InstanceView): InstanceJudgement {
  const { spec } = view.object;
  const workload = judgeWorkload(view);
  const models = judgeModels(view);
  const database = judgeDatabase(view);
  const conditions = [
    toJudgement('DatabaseReady', database),
    toJudgement('StoreReady', view.store),
    toJudgement('WorkloadReady', workload.reached),
    toJudgement('ModelsReady', models.all),
  ];
  // In this order: the first that keeps the instance from serving is the reason of Ready.
  const causes = [database, view.store, models.any, snapshotReached(view), workload.reached];
  const cause = causes.find((reached) => !reached.ok);
  const ready =
    cause === undefined || cause.ok
      ? { ok: true, reason: 'Ready', message: workload.url === undefined ? 'serves' : `serves at ${workload.url}` }
      : { ok: false, reason: cause.reason, message: cause.message };
  return {
    ready,
    conditions: [
      { type: 'Ready', status: ready.ok ? 'True' : 'False', reason: ready.reason, message: ready.message },
      ...conditions,
    ],
    models: spec.models.map(({ modelName, identifier }) => {
      const problem = view.entryProblems.get(identifier);
      return {
        modelName,
        identifier,
        ready: problem === undefined,
        ...(problem === undefined ? {} : { reason: problem.reason }),
      };
    }),
    workload,
    served: new Set(spec.models.map(({ modelName }) => modelName)),
  };
}

/** One that answers and could not be brought to our schema is not ready. */
function judgeDatabase({ database }: InstanceView): Reached {
  if (!database.ok || database.opened) return database;
  return {
    ok: false,
    reason: 'DatabaseNotMigrated',
    message: `${database.message} answers, but has not been migrated`,
  };
}

const toJudgement = (type: string, reached: Reached): Judgement =>
  reached.ok
    ? { type, status: 'True', reason: 'Ready', message: reached.message }
    : { type, status: 'False', reason: reached.reason, message: reached.message };

/** `all`: what ModelsReady says. `any`: whether one entry at least can serve, which is all that Ready asks. */
function judgeModels(view: InstanceView): { readonly all: Reached; readonly any: Reached } {
  const { object } = view;
  const { models } = object.spec;
  const none = toReached(noModels(models));
  if (none !== undefined) return { all: none, any: none };
  const [first] = view.entryProblems.values();
  const some = {
    ok: true,
    message: `${models.length - view.entryProblems.size} of ${models.length} model entries can serve`,
  } as const;
  const snapshot = snapshotProblem(view);
  // Who shares a Secret serves all the same, so it keeps nothing from being ready.
  const allowed = object.metadata.annotations?.[SHARED_CREDENTIALS_ANNOTATION];
  const shared = toReached(sharedCredentials(models, allowed));
  if (first === undefined) return { all: shared ?? snapshot ?? some, any: some };
  const told = [...view.entryProblems.values(), ...(shared === undefined ? [] : [shared])];
  const message = told.map((problem) => problem.message).join('\n');
  const problem = { ok: false, reason: first.reason, message } as const;
  return { all: problem, any: view.entryProblems.size < models.length ? some : problem };
}

function toReached(findings: ReadonlyArray<Finding>): (Reached & { ok: false }) | undefined {
  const problem = toProblem(findings);
  return problem && { ok: false, ...problem };
}

/** A snapshot that is too large is not published; the one before goes on serving. */
function snapshotProblem({ snapshot }: InstanceView): (Reached & { ok: false }) | undefined {
  if (snapshot.bytes <= LARGEST_SNAPSHOT) return undefined;
  const message = `the compiled models are ${snapshot.bytes} bytes, more than the ${LARGEST_SNAPSHOT} that fit a ConfigMap: shorten the list of models, or make a second instance`;
  return { ok: false, reason: 'SnapshotTooLarge', message };
}

function snapshotReached(view: InstanceView): Reached {
  if (view.snapshot.published) return { ok: true, message: view.snapshot.name };
  const problem = snapshotProblem(view);
  const earlier = view.object.status?.snapshotHash;
  if (earlier !== undefined) return { ok: true, message: `goes on with the snapshot ${earlier}` };
  return problem ?? { ok: false, reason: 'SnapshotNotPublished', message: 'the compiled models are not published yet' };
}
