// Open lines: positions of the records that are not dropped; the records themselves are on disk only.
export interface Line {
  segment: number;
  /** The offset in the segment. */
  at: number;
  /** The length on disk. */
  bytes: number;
  /** Whether the record has progress: it replaces the previous record of progress. */
  readonly isProgress: boolean;
}

export interface OpenLines {
  add(id: string, line: Line): void;
  /** Drops the lines of this id. */
  drop(id: string): void;
  isEmpty(): boolean;
  /** The total length on disk. */
  bytes(): number;
  /** Lines in this segment and earlier ones; oldest first within an id. */
  upTo(segment: number): Line[];
}

export function createOpenLines(): OpenLines {
  /** The lines of each id, oldest first: a few, however long its request runs. */
  const open = new Map<string, Line[]>();
  let bytes = 0;
  return {
    add(id, line) {
      const own = open.get(id);
      bytes += line.bytes;
      if (own === undefined) return void open.set(id, [line]);
      const replaced = line.isProgress ? own.findIndex(({ isProgress }) => isProgress) : -1;
      if (replaced !== -1) bytes -= lengthOf(own.splice(replaced, 1));
      own.push(line);
    },
    drop(id) {
      const own = open.get(id);
      if (own === undefined) return;
      bytes -= lengthOf(own);
      open.delete(id);
    },
    isEmpty: () => open.size === 0,
    bytes: () => bytes,
    upTo: (segment) => [...open.values()].flatMap((lines) => lines.filter((line) => line.segment <= segment)),
  };
}

const lengthOf = (lines: ReadonlyArray<Line>): number => lines.reduce((sum, { bytes }) => sum + bytes, 0);
