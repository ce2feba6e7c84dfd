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

export function createOpenLines(): OpenLines {
  const open = new Map<string, { readonly line: string; segment: number }[]>();
  let bytes = 0;
  return {
    add(id, line, segment) {
      const lines = open.get(id);
      if (lines === undefined) open.set(id, [{ line, segment }]);
      else lines.push({ line, segment });
      bytes += Buffer.byteLength(line);
    },
    done(id) {
      for (const { line } of open.get(id) ?? []) bytes -= Buffer.byteLength(line);
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
