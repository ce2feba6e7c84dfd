// Rules of a function's role in access.yaml, for tests that take each right away.
import type { KubeObject } from '#core/ports/cluster.ts';
import { accessManifests } from '../../infra/packaging/manifests/apply.ts';

/** As the API server has it. */
export interface AccessRule {
  readonly apiGroups: readonly [string];
  readonly resources: ReadonlyArray<string>;
  readonly resourceNames?: ReadonlyArray<string>;
  readonly verbs: ReadonlyArray<string>;
}

/** A verb of a resource: what a test takes away. */
export interface Right {
  readonly rule: AccessRule;
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

export function accessRules(account: 'admission' | 'reconcile'): ReadonlyArray<AccessRule> {
  const isRole = ({ kind, metadata }: KubeObject) => kind === 'ClusterRole' && metadata.name.endsWith(`-${account}`);
  const rules = accessManifests().find(isRole)?.rules as ReadonlyArray<AccessRule> | undefined;
  if (rules === undefined) throw new Error(`access.yaml has no role for ${account}`);
  return rules;
}

export const rightsOf = (rules: ReadonlyArray<AccessRule>): ReadonlyArray<Right> =>
  rules.flatMap((rule) =>
    rule.resources.flatMap((resource) =>
      rule.verbs.map((verb) => ({ rule, group: rule.apiGroups[0], resource, verb })),
    ),
  );

/** All rights but this one; the API server refuses rules without verbs. */
export const rulesWithout = (rules: ReadonlyArray<AccessRule>, removed?: Right): ReadonlyArray<AccessRule> =>
  rules
    .flatMap((rule) =>
      rule.resources.map((resource) => {
        const isMeant = (verb: string) =>
          rule === removed?.rule && resource === removed.resource && verb === removed.verb;
        return { ...rule, resources: [resource], verbs: rule.verbs.filter((verb) => !isMeant(verb)) };
      }),
    )
    .filter(({ verbs }) => verbs.length > 0);
