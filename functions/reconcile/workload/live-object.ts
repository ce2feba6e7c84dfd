// A workload object as it is in the cluster, with only what planning reads: the owner of its namespace may fill it with
// a megabyte.
import * as z from 'zod';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { LOGINS_ANNOTATION, SNAPSHOT_ANNOTATION, VERSION_ANNOTATION } from '#crds/names/group.ts';
import { isOwnedBy } from '#crds/names/object-meta.ts';

const MAX_ANNOTATION = 256;
const MAX_CONDITIONS = 16;
/** As many as Gateway API allows. */
const MAX_PARENTS = 32;

const Count = z.number().default(0);
const Text = z.string().default('');
const Annotations = z
  .record(z.string(), z.string())
  .default({})
  .transform((all) =>
    Object.fromEntries(
      [VERSION_ANNOTATION, SNAPSHOT_ANNOTATION, LOGINS_ANNOTATION].flatMap((name) => {
        const text = Object.hasOwn(all, name) ? (all[name] ?? '') : '';
        return text === '' || text.length > MAX_ANNOTATION ? [] : [[name, text]];
      }),
    ),
  );
const firstOf = <T extends z.ZodType>(each: T, max = MAX_CONDITIONS) =>
  z.preprocess((list) => (Array.isArray(list) ? list.slice(0, max) : list), z.array(each).default([]));

const Condition = z.object({ type: z.string(), status: z.string(), reason: Text, message: Text });
/** A Gateway in the status of an HTTPRoute. */
const Parent = z.object({
  parentRef: z.object({ name: z.string(), namespace: z.string().optional(), sectionName: z.string().optional() }),
  conditions: firstOf(Condition.extend({ observedGeneration: z.number().optional() })),
});

/** The fields read of a Deployment, a Knative Service, an HTTPRoute and an Ingress. */
const Fields = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string().default(''),
    generation: Count,
    deletionTimestamp: z.string().optional(),
    annotations: Annotations,
  }),
  spec: z
    .object({
      replicas: z.number().default(1),
      hostnames: firstOf(z.string()),
      rules: firstOf(z.object({ host: Text })),
      template: z.object({ metadata: z.object({ annotations: Annotations }).prefault({}) }).prefault({}),
    })
    .prefault({}),
  status: z
    .object({
      observedGeneration: Count,
      replicas: Count,
      updatedReplicas: Count,
      availableReplicas: Count,
      conditions: firstOf(Condition),
      url: z.string().optional(),
      latestCreatedRevisionName: Text,
      latestReadyRevisionName: Text,
      parents: firstOf(Parent, MAX_PARENTS),
      loadBalancer: z
        .object({ ingress: firstOf(z.object({ ip: z.string().optional(), hostname: z.string().optional() })) })
        .prefault({}),
      traffic: firstOf(z.object({ latestRevision: z.boolean().default(false) })),
    })
    .prefault({}),
});
type Fields = z.output<typeof Fields>;

export interface LiveWorkloadObject extends Fields {
  readonly isOurs: boolean;
  /** Hash of `comparedText`: of everything that an apply may change. */
  readonly comparedHash: string;
}

/** `instance`: uid of the instance that the workload object would belong to. */
export const toLiveWorkloadObject = (object: KubeObject, instance: string, hash: Hash): LiveWorkloadObject => ({
  ...Fields.parse(object),
  isOurs: isOwnedBy(object.metadata, instance),
  comparedHash: hash(comparedText(object)),
});

/** Labels, annotations, owners and spec, without the revision that the cluster's controller may write at any time. */
export function comparedText({ metadata: { labels, annotations = {}, ownerReferences }, spec }: KubeObject): string {
  const { 'deployment.kubernetes.io/revision': _, ...own } = annotations;
  return JSON.stringify([labels, own, ownerReferences, spec]);
}
