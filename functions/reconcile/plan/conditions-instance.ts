// Whether an instance can serve, and if not, why. This is computed from spec, Secrets, database and counter store,
// never by calling a provider (DESIGN 10).

import { type ConditionState, MAX_MESSAGE, toTimestamp } from '#core/conditions/conditions.ts';
import { type ConditionType, rowOf, toOtherReason } from '#core/conditions/reasons.ts';
import { cutText } from '#core/json/text.ts';
import { MAX_SNAPSHOT } from '#core/models/compile-snapshot.ts';
import type { Millis } from '#core/ports/money.ts';
import type { PreviousLedger } from '#core/ports/registry.ts';
import { toProblem } from '#core/rules/finding.ts';
import { noModels, sharedCredentials } from '#core/rules/instance.ts';
import { toServedModels } from '#core/rules/models.ts';
import type { DidYouMean } from '#core/rules/nearest-name.ts';
import type { GatewayInstance, GatewayInstanceStatus } from '#crds/kinds/gateway-instance.ts';
import { ADOPT_LEDGER_ANNOTATION, SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { type CheckResult, type InstanceView, idOf, type Problem, type World } from '../world.ts';
import { evaluateRoute } from './conditions-route.ts';
import { evaluateWorkload, whyNotShared } from './conditions-workload.ts';

export type InstanceConditions = ReturnType<typeof evaluateInstance>;

export function evaluateInstance(view: InstanceView, world: World, didYouMean: DidYouMean) {
  const { object, entryProblems } = view;
  const workload = evaluateWorkload(view, world);
  const evaluated = entryProblems === 'unread' ? modelsInStatus(object) : checkModels(view, entryProblems);
  const database = checkDatabase(view, world);
  const store = toFailed(whyNotShared(view, workload.type, world.platform.manyProcesses)) ?? view.store;
  // In this order: the first cause that keeps the instance from serving is the reason of Ready.
  const causes = [database, store, evaluated.any, checkSnapshot(view), workload.check];
  const { check: route, address } = evaluateRoute(view, workload, world);
  const serves = address.url === undefined ? 'serves' : `serves at ${address.url}`;
  const ready: CheckResult = causes.find((check) => !check.ok) ?? { ok: true, message: serves };
  return {
    ready,
    conditions: [
      toCondition('Ready', ready),
      toCondition('DatabaseReady', database),
      toCondition('StoreReady', store),
      toCondition('WorkloadReady', workload.check),
      ...(route === undefined ? [] : [toCondition('RouteReady', route)]),
      toCondition('ModelsReady', evaluated.all),
    ],
    models: evaluated.models,
    workload,
    route,
    address,
    served: toServedModels(
      object.spec.models.map(({ modelName }) => modelName),
      didYouMean,
    ),
  };
}

const toCondition = (type: ConditionType, check: CheckResult): ConditionState =>
  check.ok
    ? { type, status: 'True', reason: 'Ready', message: check.message }
    : { type, status: 'False', reason: check.reason, message: check.message };

type FailedCheck = Extract<CheckResult, { readonly ok: false }>;

const toFailed = (problem: Problem | undefined): FailedCheck | undefined => problem && { ok: false, ...problem };

/** A database that answers but lacks our schema is not ready. */
function checkDatabase(view: InstanceView, { failures }: World): CheckResult {
  const { database, object } = view;
  if (!database.ok || hasLedger(view)) return database;
  const failure = failures.get(idOf(object.kind, object.metadata));
  const message = `${database.message} answers, but has not been migrated`;
  const isOfDatabase = rowOf(failure?.reason)?.conditions?.DatabaseReady === 'False';
  return { ok: false, reason: 'DatabaseNotMigrated', message, ...(isOfDatabase ? failure : {}) };
}

/** `all`: the state of ModelsReady. `any`: whether at least one model entry can serve, which is enough for Ready. */
interface ModelConditions {
  readonly all: CheckResult;
  readonly any: CheckResult;
  readonly models: GatewayInstanceStatus['models'];
}

function checkModels(view: InstanceView, entryProblems: ReadonlyMap<string, Problem>): ModelConditions {
  const { object } = view;
  const entries = object.spec.models;
  const models = entries.map(({ modelName, identifier }) => {
    const problem = entryProblems.get(identifier);
    return { modelName, identifier, ready: problem === undefined, reason: problem?.reason };
  });
  const none = toFailed(toProblem(noModels(entries)));
  if (none !== undefined) return { models, all: none, any: none };
  const served = entries.length - entryProblems.size;
  const some = { ok: true, message: `${served} of ${entries.length} model entries can serve` } as const;
  // Model entries that share a Secret still serve, so this does not change Ready.
  const shared = toProblem(sharedCredentials(entries, object.metadata.annotations?.[SHARED_CREDENTIALS_ANNOTATION]));
  const [first] = entryProblems.values();
  if (first === undefined) return { models, all: toFailed(shared) ?? snapshotProblem(view) ?? some, any: some };
  const problems = [...entryProblems.values(), ...(shared === undefined ? [] : [shared])];
  const message = cutText(problems.map((problem) => problem.message).join('\n'), MAX_MESSAGE);
  const problem = { ok: false, reason: first.reason, message } as const;
  return { models, all: problem, any: served > 0 ? some : problem };
}

/** As the last run that read the Secrets of model entries has found it. */
function modelsInStatus({ status }: GatewayInstance): ModelConditions {
  const { models = [], conditions = [] } = status ?? {};
  const { status: state, reason, message } = conditions.find(({ type }) => type === 'ModelsReady') ?? READY;
  const all: CheckResult =
    state === 'True' ? { ok: true, message } : { ok: false, reason: toOtherReason(reason), message };
  return { models, all, any: models.some(({ ready }) => ready) ? { ok: true, message } : all };
}

const READY = { status: 'True', reason: 'Ready', message: '' };

/** A snapshot that is too large is not published. The previous one continues serving. */
function snapshotProblem({ snapshot }: InstanceView): FailedCheck | undefined {
  if (snapshot.bytes <= MAX_SNAPSHOT) return undefined;
  const message = `the compiled models are ${snapshot.bytes} bytes, more than the ${MAX_SNAPSHOT} that fit a ConfigMap: shorten the list of models, or create a second instance`;
  return { ok: false, reason: 'SnapshotTooLarge', message };
}

function checkSnapshot(view: InstanceView): CheckResult {
  const { isPublished, isPushed, name } = view.snapshot;
  if (isPublished && isPushed) return { ok: true, message: name };
  const earlier = view.object.status?.snapshotHash;
  if (earlier !== undefined) return { ok: true, message: `the gateway continues with snapshot ${earlier}` };
  const message = isPublished
    ? `${name} could not be written to the KV namespace that gateways outside the cluster read: the log of the reconciler has the cause`
    : 'the compiled models are not published yet';
  return snapshotProblem(view) ?? { ok: false, reason: 'SnapshotNotPublished', message };
}

/**
 * The condition `LedgerAdopted`, while the annotation is set: whether the instance has its own ledger, or continues
 * that of a closed instance.
 */
export function toLedgerCondition(view: InstanceView): ReadonlyArray<ConditionState> {
  const { object, adopted } = view;
  const requested = requestedLedger(object);
  if (requested === undefined || !hasLedger(view)) return [];
  const type = 'LedgerAdopted';
  if (adopted?.uid === requested.uid) {
    const message = `this instance continues the ledger of instance ${requested.uid} since ${toTimestamp(adopted.since)}`;
    return [{ type, status: 'True', reason: 'Adopted', message }];
  }
  const message =
    `this instance keeps its own ledger: remove the annotation ${ADOPT_LEDGER_ANNOTATION}, ` +
    'or delete this instance and create it with the annotation';
  return [{ type, status: 'False', reason: 'LedgerInUse', message }];
}

/**
 * The time for which claims wait for their objects after an adoption: a restore creates the instance first, and then
 * its VirtualKeys one by one.
 */
const ARRIVAL_TIME: Millis = 3_600_000;

/** `<uid>`, or `<uid> lost` if no operator can close that instance any more. */
export function requestedLedger({ metadata }: Pick<GatewayInstance, 'metadata'>): PreviousLedger | undefined {
  const text = metadata.annotations?.[ADOPT_LEDGER_ANNOTATION];
  if (text === undefined) return undefined;
  const [uid = '', word] = text.trim().split(/\s+/);
  return { uid, isMissing: word === 'lost' };
}

/**
 * Whether the database has our schema and the instance, with the ledger that the annotation names. An instance that
 * already has claims keeps its own ledger.
 */
export function hasLedger({ database, object, adopted, hasClaims }: InstanceView): boolean {
  const isSettled = requestedLedger(object) === undefined || adopted !== undefined || hasClaims;
  return database.ok && database.isOpen && isSettled;
}

export const canHoldersStillArrive = ({ adopted, databaseNow }: InstanceView): boolean =>
  adopted !== undefined && databaseNow < adopted.since + ARRIVAL_TIME;
