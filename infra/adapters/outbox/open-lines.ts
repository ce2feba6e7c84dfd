// Which lines still matter? Those of ids that are not done, and where they stand.
export interface OpenLines {
  add(id: string, line: string, segment: number): void;
  done(id: string): void;
  isEmpty(): boolean;
  /** What they take on disk. */
  bytes(): number;
  /** Lines that stand in this segment or before it, oldest first. */
  upTo(segment: number): string;
  /** They stand in `to` now. */
  move(upTo: number, to: number): void;
}

interface Line {
  readonly line: string;
  /** On disk. */
  readonly bytes: number;
  segment: number;
}

export function createOpenLines(): OpenLines {
  const open = new Map<string, Line[]>();
  let bytes = 0;
  return {
    add(id, line, segment) {
      const added = { line, bytes: Buffer.byteLength(line), segment };
      const lines = open.get(id);
      if (lines === undefined) open.set(id, [added]);
      else lines.push(added);
      bytes += added.bytes;
    },
    done(id) {
      for (const line of open.get(id) ?? []) bytes -= line.bytes;
      open.delete(id);
    },
    isEmpty: () => open.size === 0,
    bytes: () => bytes,
    upTo(segment) {
      const lines = [...open.values()].flat().filter((line) => line.segment <= segment);
      return lines.map(({ line }) => line).join('');
    },
    move(upTo, to) {
      for (const line of [...open.values()].flat()) {
        if (line.segment <= upTo) line.segment = to;
      }
    },
  };
}
