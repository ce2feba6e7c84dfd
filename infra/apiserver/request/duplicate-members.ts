// Which members does a JSON text name twice? JSON.parse silently takes the last one.

const token = /\s+|"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

type Level =
  | { readonly path: string; readonly members: Set<string>; readonly reported: Set<string>; key: string }
  | { readonly path: string; index: number };

/** The paths of repeated members, as strict decoding names them (`metadata.labels.app`, `spec.models[0].name`), each once. The text is valid JSON. */
export function duplicateMembers(text: string): string[] {
  const levels: Level[] = [];
  const found: string[] = [];
  let expectsKey = false;
  for (const [part] of text.matchAll(token)) {
    const level = levels.at(-1);
    if (part === '{') levels.push({ path: childPath(level), members: new Set(), reported: new Set(), key: '' });
    else if (part === '[') levels.push({ path: childPath(level), index: 0 });
    else if (part === '}' || part === ']') levels.pop();
    else if (part === ',' && level !== undefined && 'index' in level) level.index++;
    else if (part.startsWith('"') && expectsKey && level !== undefined && 'members' in level)
      note(level, JSON.parse(part), found);
    if (part.trim() !== '')
      expectsKey =
        part === '{' || (part === ',' && levels.at(-1) !== undefined && 'members' in (levels.at(-1) as Level));
  }
  return found;
}

function note(level: Extract<Level, { members: Set<string> }>, key: string, found: string[]): void {
  level.key = key;
  if (level.members.has(key) && !level.reported.has(key)) {
    level.reported.add(key);
    found.push(childPath(level));
  }
  level.members.add(key);
}

function childPath(level: Level | undefined): string {
  if (level === undefined) return '';
  if ('index' in level) return `${level.path}[${level.index}]`;
  return level.path === '' ? level.key : `${level.path}.${level.key}`;
}
