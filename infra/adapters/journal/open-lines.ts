// Open lines: positions of the records whose ids are not done; their contents are on disk only.
export interface Line {
  segment: number;
  /** The offset in the segment. */
  at: number;
  /** The length on disk. */
  bytes: number;
  /** The record is one of progress, which replaces the previous record. */
  readonly isProgress: boolean;
}

export interface OpenLines {
  add(id: string, line: Line): void;
  done(id: string): void;
  isEmpty(): boolean;
  /** The total length on disk. */
  bytes(): number;
  /** Lines in this segment and earlier ones; oldest first within an id. */
  upTo(segment: number): Line[];
}

export function createOpenLines(): OpenLines {
  /** The lines of each id, oldest first: a few, however long its request runs. */
  const open = new Map<string, ReadonlyArray<Line>>();
  let bytes = 0;
  return {
    add(id, line) {
      const own = open.get(id) ?? [];
      const isReplaced = ({ isProgress }: Line) => isProgress && line.isProgress;
      open.set(id, [...own.filter((one) => !isReplaced(one)), line]);
      bytes += line.bytes - lengthOf(own.filter(isReplaced));
    },
    done(id) {
      bytes -= lengthOf(open.get(id) ?? []);
      open.delete(id);
    },
    isEmpty: () => open.size === 0,
    bytes: () => bytes,
    upTo: (segment) => [...open.values()].flatMap((lines) => lines.filter((line) => line.segment <= segment)),
  };
}

const lengthOf = (lines: ReadonlyArray<Line>): number => lines.reduce((sum, { bytes }) => sum + bytes, 0);
