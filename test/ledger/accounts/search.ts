// All orders of a scene: every reachable state is verified, and from every one the end can be reached.
import { hash } from 'node:crypto';
import { ofClosing } from './closing.ts';
import { initial } from './initial.ts';
import { ofProcess } from './process.ts';
import { ofRejoining } from './rejoin.ts';
import { copyOf, type Edge, type Go, keyOf, type Scene, type State } from './state.ts';
import { ofStopping } from './stopping.ts';
import { isQuiet, verify } from './verdict.ts';
import { ofWorld } from './world.ts';

export interface Searched {
  readonly states: number;
  readonly quiet: number;
  /** The first violation, with the steps that lead there. */
  readonly wrong: string | undefined;
}

const MAX_STATES = 3_000_000;

export function search(scene: Scene): Searched {
  const start = (scene.begin ?? []).reduce((state, step) => after(scene, state, step), initial(scene));
  const index = new Map<string, number>([[hash('sha1', keyOf(start)), 0]]);
  const from: number[] = [-1];
  const names: string[] = [''];
  const before: number[][] = [[]];
  const ends: number[] = [];
  let frontier: [number, State][] = [[0, start]];
  const storyOf = (of: number): string => (of <= 0 ? '' : `${storyOf(from[of] ?? -1)}\n${names[of]}`);
  while (frontier.length > 0) {
    const found: [number, State][] = [];
    for (const [here, state] of frontier) {
      if (isQuiet(state)) ends.push(here);
      for (const { name, to, wrong: broken } of next(scene, state)) {
        const key = hash('sha1', keyOf(to));
        const known = index.get(key);
        const there = known ?? from.length;
        const wrong = broken ?? (known === undefined ? verify(scene, to) : undefined);
        if (wrong !== undefined)
          return { states: from.length, quiet: ends.length, wrong: `${wrong}:${storyOf(here)}\n${name}` };
        if (known === undefined) {
          index.set(key, there);
          from.push(here);
          names.push(name);
          before.push([]);
          found.push([there, to]);
          if (there > MAX_STATES) throw new Error(`there are more states than can be tried`);
        }
        before[there]?.push(here);
      }
    }
    frontier = found;
  }
  const reaching = new Set(ends);
  for (const end of reaching) for (const one of before[end] ?? []) reaching.add(one);
  const stuck = from.findIndex((_, of) => !reaching.has(of));
  const wrong = stuck < 0 ? undefined : `something waits for ever:${storyOf(stuck)}`;
  return { states: from.length, quiet: ends.length, wrong };
}

function after(scene: Scene, state: State, step: string): State {
  const edge = next(scene, state).find(({ name }) => name === step);
  if (edge === undefined) throw new Error(`there is no step "${step}" then`);
  return edge.to;
}

/** All next steps of a state. */
function next(scene: Scene, state: State): Edge[] {
  const edges: Edge[] = [];
  const go: Go = (name, change) => {
    const to = copyOf(state);
    const wrong = change(to) ?? undefined;
    edges.push({ name, to, wrong });
  };
  for (const who of state.processes.keys()) {
    ofProcess(scene, state, who, go);
    ofClosing(scene, state, who, go);
    ofRejoining(scene, state, who, go);
    ofStopping(scene, state, who, go);
  }
  ofWorld(scene, state, go);
  return edges;
}
