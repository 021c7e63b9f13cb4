import { requestJson } from "./api.ts";
import { useQuery } from "./use-query.ts";

/** Something that takes a setting, a program or a server of its own; `reason` says why it is off, and what turns it on. */
export type Capability = { name: string; title: string; enabled: boolean; reason: string | null };

/** What this installation can do. It changes with settings, so rarely. */
export function useCapabilities() {
  return useQuery<Capability[]>({
    key: ["capabilities"],
    read: async (signal) =>
      (await requestJson<{ capabilities: Capability[] }>("/v1/capabilities", { signal })).capabilities,
    staleMs: 60_000,
  });
}

/** Whether rows can be queried as soon as they are acknowledged; so it is unless the server says otherwise. */
export function useIsVisibleAtOnce(): boolean {
  return useCapabilities().data?.find(({ name }) => name === "visible_at_once")?.enabled !== false;
}
