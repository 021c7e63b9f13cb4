import { cutWithin } from "../../core/cut-text.ts";
import type { NodeRecord } from "../memory/model.ts";
import type { Fact } from "./fact-file.ts";

/** How types of memories and types of files correspond: a memory's type stays where the file's type fits it. */
const FILE_TYPES: Readonly<Record<string, string>> = {
  preference: "user",
  learning: "feedback",
  procedure: "feedback",
  fact: "project",
  decision: "project",
};

const MEMORY_TYPES: Readonly<Record<string, readonly string[]>> = {
  user: ["preference"],
  feedback: ["learning", "procedure"],
  project: ["fact", "decision"],
  reference: ["fact"],
};

/** The type of a memory that a file says; `before`: of the memory as it is. */
export function memoryTypeOf(fileType: string, before: string | undefined): string {
  const fitting = MEMORY_TYPES[fileType] ?? ["fact"];
  return before !== undefined && fitting.includes(before) ? before : (fitting[0] ?? "fact");
}

/** The type of a file that says a memory; `before`: of the file as it is. */
export function fileTypeOf(memoryType: string | undefined, before: string | undefined): string {
  const fits = before !== undefined && (MEMORY_TYPES[before] ?? []).includes(memoryType ?? "fact");
  return fits ? before : (FILE_TYPES[memoryType ?? "fact"] ?? "project");
}

const TITLE_CHARS = 80;

/** What a memory says, as a file would. */
export function factOf(node: NodeRecord, before?: Pick<Fact, "type">): Fact {
  const { description } = node.props;
  return {
    name: node.name ?? titleOf(node.content),
    description: typeof description === "string" ? description : "",
    type: fileTypeOf(node.memoryType, before?.type),
    body: node.content,
  };
}

/** The beginning of a text, on one line. */
export function titleOf(content: string): string {
  const [line = ""] = content.trim().split("\n");
  const short = line.replaceAll(/\s+/gu, " ").trim();
  return cutWithin(short, TITLE_CHARS);
}

/** Whether two facts say the same; the type of a file counts only as far as memories tell types apart. */
export function sameFact(a: Fact, b: Fact): boolean {
  return a.name === b.name && a.description === b.description && a.body.trim() === b.body.trim() && a.type === b.type;
}
