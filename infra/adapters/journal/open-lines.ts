// Open lines: positions of the records whose ids are not done; their contents are on disk only.
export interface Line {
  segment: number;
  /** The offset in the segment. */
  at: number;
  /** The length on disk. */
  bytes: number;
  /** The next line of the same id. */
  next: Line | undefined;
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
  /** The first line of each id. */
  const open = new Map<string, Line>();
  let bytes = 0;
  return {
    add(id, line) {
      const first = open.get(id);
      if (first === undefined) open.set(id, line);
      else lastOf(first).next = line;
      bytes += line.bytes;
    },
    done(id) {
      for (let line = open.get(id); line !== undefined; line = line.next) bytes -= line.bytes;
      open.delete(id);
    },
    isEmpty: () => open.size === 0,
    bytes: () => bytes,
    upTo(segment) {
      const lines: Line[] = [];
      for (const first of open.values()) {
        for (let line: Line | undefined = first; line !== undefined; line = line.next) {
          if (line.segment <= segment) lines.push(line);
        }
      }
      return lines;
    },
  };
}

function lastOf(first: Line): Line {
  let line = first;
  while (line.next !== undefined) line = line.next;
  return line;
}
