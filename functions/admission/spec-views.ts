// What do the checks read of a spec, however broken the rest of it is?
// An update may leave an old mistake where it was, so a check meets specs that the schema refuses: what has the wrong shape reads as absent.
import * as z from 'zod';

const maybe = <S extends z.ZodType>(schema: S) => schema.optional().catch(undefined);
const text = maybe(z.string());
const flag = maybe(z.boolean());
const entries = z.record(z.string(), z.string()).catch({});
const listOf = <S extends z.ZodType>(item: S) => z.array(item).catch([]);
const ref = maybe(z.object({ name: text }));
const refs = listOf(z.object({ name: text }).catch({ name: undefined }));
const names = listOf(z.string().optional().catch(undefined));
const secretRef = maybe(z.object({ nameRef: text, keys: entries }));
const instanceRef = maybe(z.object({ name: text, namespace: text }));
const connectionRef = maybe(z.object({ instanceRef }));

const ModelEntryView = z.object({
  modelName: text,
  identifier: text,
  requiresAuth: flag,
  modelCredentials: secretRef,
  gatewayParams: maybe(
    z.object({
      model: text,
      customLLMProvider: text,
      apiBase: text,
      inputCostPerMillionTokens: text,
      outputCostPerMillionTokens: text,
      cachedInputCostPerMillionTokens: text,
      cacheWriteCostPerMillionTokens: text,
    }),
  ),
});

export const InstanceView = z.object({
  databaseSecretRef: secretRef,
  redisSecretRef: secretRef,
  models: listOf(ModelEntryView.catch({} as z.output<typeof ModelEntryView>)),
});
export type InstanceView = z.output<typeof InstanceView>;
export type ModelEntryView = z.output<typeof ModelEntryView>;

export const KeyView = z.object({
  keyAlias: text,
  models: names,
  modelMaxBudget: z.record(z.string(), z.object({ maxBudget: text }).catch({ maxBudget: undefined })).catch({}),
  maxBudget: text,
  connectionRef,
  userRef: ref,
  teamRef: ref,
  secretTemplate: maybe(z.object({ name: text })),
});
export type KeyView = z.output<typeof KeyView>;

export const UserView = z.object({
  connectionRef,
  userEmail: text,
  autoCreateKey: flag,
  keyAlias: text,
  models: names,
  maxBudget: text,
  teamRefs: refs,
});
export type UserView = z.output<typeof UserView>;

export const TeamView = z.object({
  connectionRef,
  teamAlias: text,
  models: names,
  maxBudget: text,
  members: refs,
});
export type TeamView = z.output<typeof TeamView>;

/** What keys, users and teams have in common. */
export type MemberView = Pick<KeyView, 'connectionRef' | 'models' | 'maxBudget'>;

/** What was read of a spec, for as long as the spec lives: every check of a chain asks again, and nothing changes a spec in place. */
const known = new WeakMap<object, Map<z.ZodObject, unknown>>();

/** Any JSON as a view: never fails. */
export function toView<S extends z.ZodObject>(view: S, spec: unknown): z.output<S> {
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) return view.parse({});
  const views = known.get(spec) ?? new Map<z.ZodObject, unknown>();
  if (!views.has(view)) views.set(view, view.parse(spec));
  known.set(spec, views);
  return views.get(view) as z.output<S>; // Put there by this very view.
}
