// Does an annotation with our prefix do nothing, because it is misspelt or stands on the wrong kind?
import { ASKED_BY_ANNOTATION, WRITTEN_BY_US } from '#crds/annotations.ts';
import type { KindName } from '#crds/kinds.ts';
import type { Finding } from '../finding.ts';
import { nearest } from '../nearest.ts';

const OURS = /^(?:[^/]+\.)?gateway-operator\.dev\/(.*)$/s;

/** Nobody reads more of them. */
const MOST_TOLD = 20;

/** Where each annotation that people write is read. */
const PLACES: ReadonlyMap<string, string> = new Map(
  Object.entries(ASKED_BY_ANNOTATION).flatMap(([kind, askings]) =>
    askings.map(({ annotation, on = `a ${kind}` }) => [annotation, on] as const),
  ),
);

/** `names` are those of all annotations of an object; foreign ones are nobody's business here. */
export function strayAnnotations(kind: KindName, names: ReadonlyArray<string>): Finding[] {
  const strays = names.flatMap((name) => {
    const [, ending] = OURS.exec(name) ?? [];
    return ending === undefined || WRITTEN_BY_US.includes(name) || PLACES.get(name) === `a ${kind}`
      ? []
      : [{ name, ending }];
  });
  return strays.slice(0, MOST_TOLD).map(({ name, ending }) => {
    const place = PLACES.get(name);
    const path = `metadata.annotations[${JSON.stringify(name)}]`;
    const found = { path, value: undefined, effect: 'warn' } as const;
    if (place !== undefined) {
      const message = `does nothing on a ${kind}; remove it here, and write it on ${place}`;
      return { rule: 'MisplacedAnnotation', message, ...found };
    }
    return {
      rule: 'UnknownAnnotation',
      message: `nothing reads an annotation of this name${meant(kind, ending)}`,
      ...found,
    };
  });
}

/** By what stands after the prefix: a wrong prefix of ours is a mistake like any other. What the kind itself takes goes first. */
function meant(kind: KindName, ending: string): string {
  const taken = [...PLACES].filter(([, place]) => place === `a ${kind}`).map(([name]) => name);
  const name = nearestOf(ending, taken) ?? nearestOf(ending, [...PLACES.keys()]);
  if (name === undefined) {
    return `; remove it${taken.length === 0 ? '' : `, or choose among ${taken.join(', ')}`}`;
  }
  const where = taken.includes(name) ? '' : `, on ${PLACES.get(name)}`;
  return `; did you mean ${JSON.stringify(name)}${where}?`;
}

function nearestOf(ending: string, names: ReadonlyArray<string>): string | undefined {
  const endings = new Map(names.map((name) => [name.slice(name.indexOf('/') + 1), name]));
  const near = nearest(ending, [...endings.keys()]);
  return near === undefined ? undefined : endings.get(near);
}
