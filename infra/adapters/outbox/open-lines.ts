// Open lines: those of ids that are not done, and where they stand; what they say is on disk only.
export interface Line {
  segment: number;
  /** Where it begins there. */
  at: number;
  /** On disk. */
  bytes: number;
  /** Of the same id. */
  next: Line | undefined;
}

export interface OpenLines {
  add(id: string, line: Line): void;
  done(id: string): void;
  isEmpty(): boolean;
  /** What they take on disk. */
  bytes(): number;
  /** Those in this segment or before it; of one id oldest first. */
  upTo(segment: number): Line[];
}

export function createOpenLines(): OpenLines {
  /** Of each id the first. */
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
