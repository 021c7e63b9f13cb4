import { ApiError } from "../../base/api-error.ts";
import { request, requestJson } from "../../base/api.ts";
import { queryClient } from "../../base/query-client.ts";
import { contentOf, isSame, type Content, type Dashboard } from "./document.ts";

/** A dashboard in the list. */
export type DashboardHead = Omit<Dashboard, "panels" | "settings"> & { panel_count: number };

export type DashboardVersion = { version: number; saved_at: string; saved_by: string; databases: readonly string[] };

const BASE = "/v1/dashboards";
const LIST = "dashboards";
const ONE = "dashboard";

export const LIST_KEY = [LIST] as const;
export const keyOf = (id: string): readonly unknown[] => [ONE, id];

const PAGE = 100;
/** More than these nobody reads in a list: the search finds among them. */
const MOST_LISTED = 2_000;

/** The newest first, and whether there are more. */
export async function listDashboards(signal: AbortSignal): Promise<{ all: DashboardHead[]; isCut: boolean }> {
  const all: DashboardHead[] = [];
  for (;;) {
    const before = all.at(-1)?.id;
    const query = { limit: PAGE, before };
    const { dashboards } = await requestJson<{ dashboards: DashboardHead[] }>(BASE, { query, signal });
    all.push(...dashboards);
    if (dashboards.length < PAGE) return { all, isCut: false };
    if (all.length >= MOST_LISTED) return { all, isCut: true };
  }
}

export async function readDashboard(id: string, signal?: AbortSignal): Promise<Dashboard> {
  return await requestJson<Dashboard>(pathOf(id), { signal });
}

export async function createDashboard(content: object): Promise<Dashboard> {
  const made = await requestJson<Dashboard>(BASE, { json: content });
  await dashboardChanged(made);
  return made;
}

/** Fails with 412 where the dashboard has another version by then; without one it is saved in any case. */
export async function saveDashboard(id: string, content: object, version?: number): Promise<Dashboard> {
  const saved = await requestJson<Dashboard>(pathOf(id), { method: "PATCH", json: content, ...matching(version) });
  await dashboardChanged(saved);
  return saved;
}

/** "conflict" where somebody else has saved since that version. */
export async function saveUnlessChanged(
  id: string,
  content: Content,
  version: number,
): Promise<Dashboard | "conflict"> {
  try {
    return await saveDashboard(id, content, version);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    // A save whose answer was lost has arrived: repeating it is no conflict.
    const theirs = await readDashboard(id);
    if (!isSame(contentOf(theirs), content)) return "conflict";
    await dashboardChanged(theirs);
    return theirs;
  }
}

export async function deleteDashboard(id: string, version?: number): Promise<void> {
  await request(pathOf(id), { method: "DELETE", ...matching(version) });
  queryClient.removeQueries({ queryKey: keyOf(id) });
  await queryClient.invalidateQueries({ queryKey: LIST_KEY });
}

export async function listVersions(id: string, signal: AbortSignal): Promise<DashboardVersion[]> {
  return (await requestJson<{ versions: DashboardVersion[] }>(`${pathOf(id)}/versions`, { signal })).versions;
}

export async function readVersion(id: string, version: number, signal: AbortSignal): Promise<Content> {
  return await requestJson<Content>(`${pathOf(id)}/versions/${version}`, { signal });
}

export async function restoreVersion(id: string, version: number, current: number): Promise<Dashboard> {
  const path = `${pathOf(id)}/versions/${version}/restore`;
  const restored = await requestJson<Dashboard>(path, { method: "POST", ...matching(current) });
  await dashboardChanged(restored);
  return restored;
}

function pathOf(id: string): string {
  return `${BASE}/${encodeURIComponent(id)}`;
}

function matching(version: number | undefined): { headers?: Record<string, string> } {
  return version === undefined ? {} : { headers: { "If-Match": `"${version}"` } };
}

/** Has the pages show what is on the server now. */
export async function dashboardChanged(dashboard: Dashboard): Promise<void> {
  queryClient.setQueryData(keyOf(dashboard.id), dashboard);
  await queryClient.invalidateQueries({ queryKey: LIST_KEY });
}
