import type { DashboardDocument } from "../../../../knowledge/dashboards/document.ts";
import type { Place } from "./layout.ts";

/** What `GET /v1/dashboards/{id}` answers. */
export type Dashboard = {
  id: string;
  name: string;
  description: string | null;
  version: number;
  databases: readonly string[];
  updated_at: string;
  updated_by: string;
  panels: readonly Panel[];
  settings: Settings;
};

export type PanelQuery = { language: "sql" | "kql"; text: string; database: string };

export type Panel = {
  id: string;
  title: string;
  /** One of `PANEL_TYPES`, or one that these pages do not draw; it stays what it is. */
  type: string;
  grid: Place;
  queries: readonly PanelQuery[];
  options: Readonly<Record<string, unknown>>;
};

export type Settings = DashboardDocument["settings"];
export type Variable = Settings["variables"][number];

/** What is edited: the part of a dashboard that its versions keep. */
export type Content = Pick<Dashboard, "name" | "description" | "panels" | "settings">;

export const PANEL_TYPES = [
  { value: "timeseries", title: "Time series" },
  { value: "bar", title: "Bars" },
  { value: "stat", title: "Single values" },
  { value: "table", title: "Table" },
  { value: "logs", title: "Logs" },
  { value: "heatmap", title: "Heat map" },
  { value: "pie", title: "Pie" },
  { value: "text", title: "Text" },
] as const;

export type PanelType = (typeof PANEL_TYPES)[number]["value"];

/** Undefined for a type that these pages do not draw. */
export function knownType(type: string): PanelType | undefined {
  return PANEL_TYPES.find(({ value }) => value === type)?.value;
}

export function contentOf({ name, description, panels, settings }: Content): Content {
  return { name, description, panels, settings };
}

/** An option of a panel as text; absent, or of another kind, it is empty. */
export function textOption({ options }: Pick<Panel, "options">, name: string): string {
  const value = options[name];
  return typeof value === "string" ? value : "";
}

/** The name of a panel for buttons and messages; those without a title have their type's. */
export function panelName({ title, type }: Pick<Panel, "title" | "type">): string {
  return title !== "" ? title : (PANEL_TYPES.find(({ value }) => value === type)?.title ?? type);
}

/** One sentence for each part in which two contents differ; none where they are the same. */
export function differences(before: Content, after: Content): string[] {
  const was = new Map(before.panels.map((panel) => [panel.id, panel]));
  const is = new Map(after.panels.map((panel) => [panel.id, panel]));
  const found: string[] = [];
  if (before.name !== after.name) found.push(`The name is “${after.name}” instead of “${before.name}”.`);
  if (before.description !== after.description) found.push("The description is different.");
  for (const panel of after.panels) {
    const old = was.get(panel.id);
    if (old === undefined) found.push(`The panel “${panelName(panel)}” was added.`);
    else found.push(...panelDifferences(old, panel));
  }
  for (const panel of before.panels) {
    if (!is.has(panel.id)) found.push(`The panel “${panelName(panel)}” was deleted.`);
  }
  if (!isSame(before.settings.variables, after.settings.variables)) found.push("The variables are different.");
  if (!isSame(before.settings.time, after.settings.time)) found.push("The time range is different.");
  if (before.settings.refresh_secs !== after.settings.refresh_secs) found.push("The refresh interval is different.");
  return found;
}

function panelDifferences(before: Panel, after: Panel): string[] {
  const name = panelName(after);
  const isMoved = !isSame(before.grid, after.grid);
  const isChanged = !isSame({ ...before, grid: 0 }, { ...after, grid: 0 });
  return [
    ...(isChanged ? [`The panel “${name}” was changed.`] : []),
    ...(isMoved ? [`The panel “${name}” has another place or size.`] : []),
  ];
}

/** Both are JSON; the order of an object's fields does not count. */
export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a, inOrder) === JSON.stringify(b, inOrder);
}

function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Fields that only the server writes: a file that is the answer of a request has them too. */
const SERVER_FIELDS = new Set(["version", "databases", "created_at", "created_by", "updated_at", "updated_by"]);

/** The file that an export writes; `engine dashboards import` reads it as well. */
export function exportedText({ id, name, description, panels, settings }: Content & { id: string }): string {
  return `${JSON.stringify({ id, name, description, panels, settings }, undefined, 2)}\n`;
}

export type ImportedFile = { id: string | undefined; content: Readonly<Record<string, unknown>>; name: string };

/** The server judges the fields. Throws `Error` for a text that is no JSON object. */
export function importedFile(text: string): ImportedFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error("The file is not JSON.", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("The file has no dashboard: it is not a JSON object.");
  }
  const { id, ...content } = Object.fromEntries(Object.entries(value).filter(([field]) => !SERVER_FIELDS.has(field)));
  const { name } = content;
  return { id: typeof id === "string" ? id : undefined, content, name: typeof name === "string" ? name : "" };
}
