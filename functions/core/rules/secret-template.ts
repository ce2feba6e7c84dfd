// The rule about labels and annotations of a key's Secret: people who may create keys must not configure other software
// with them.
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import type { Finding } from './finding.ts';

type Template = VirtualKeySpec['secretTemplate'];

/** Kubernetes recommends these for every object. */
const COMMON = 'app.kubernetes.io';

/**
 * Names without a prefix on which other software acts, although Kubernetes reserves these names for people: Helm takes
 * a Secret with a label `owner` for a release, and Grafana's sidecar loads those with `grafana_…`.
 */
const FOREIGN = /^(?:owner|grafana_.*)$/i;

/** Whether a label or annotation may be in a template. `prefixes`: those that the platform's administrator allows. */
export function isHarmless(name: string, prefixes: ReadonlyArray<string>): boolean {
  const slash = name.indexOf('/');
  const prefix = name.slice(0, slash);
  if (slash === -1) return !FOREIGN.test(name);
  return prefix === COMMON || prefixes.includes(prefix);
}

/**
 * Other operators and controllers act on labels and annotations of their own domains: they would take such a Secret for
 * a cluster or a repository, or copy it.
 */
export function templateHarmless(template: Template, prefixes: ReadonlyArray<string>): ReadonlyArray<Finding> {
  return (['labels', 'annotations'] as const).flatMap((part) =>
    Object.entries(template?.[part] ?? {}).flatMap(([name, value]): Finding[] => {
      if (isHarmless(name, prefixes)) return [];
      const path = `spec.secretTemplate.${part}[${JSON.stringify(name)}]`;
      const may = [COMMON, ...prefixes].join(', ');
      const message = FOREIGN.test(name)
        ? 'must not be `owner` or begin with `grafana_`, because Helm and Grafana act on these names. Choose another name'
        : `must have no prefix, or one of these: ${may}. Remove it, or ask whoever runs the operator to add its prefix to SECRET_METADATA_PREFIXES`;
      return [{ rule: 'SecretMetadataNotAllowed', type: 'Invalid value', path, value, message, effect: 'refuse' }];
    }),
  );
}
