import { stemOf } from "./fact-file.ts";
import { LINKS, type ProjectMemory } from "./project-memory.ts";
import type { ProjectState } from "./state.ts";

/** Makes edges of what files link to, takes those back that they link to no more, and resolves to those that are. */
export async function linkEdges(memory: ProjectMemory, { files, edges }: ProjectState): Promise<[string, string][]> {
  const byName = new Map<string, string>();
  for (const [file, { nodeId }] of Object.entries(files)) byName.set(folded(stemOf(file)), nodeId);
  // Names go before names of files.
  for (const { name, nodeId } of Object.values(files)) byName.set(folded(name), nodeId);
  const wanted = new Map<string, [string, string]>();
  for (const { nodeId: src, links } of Object.values(files)) {
    for (const link of links) {
      const dst = byName.get(folded(link));
      if (dst !== undefined && dst !== src) wanted.set(`${src} ${dst}`, [src, dst]);
    }
  }
  const had = new Set(edges.map(([src, dst]) => `${src} ${dst}`));
  await memory.link(
    LINKS,
    [...wanted.values()].filter(([src, dst]) => !had.has(`${src} ${dst}`)),
  );
  const gone = edges.filter(([src, dst]) => !wanted.has(`${src} ${dst}`));
  for (const [src, dst] of gone) await memory.unlink(LINKS, src, dst, "the file does not link there any more");
  return [...wanted.values()];
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
