import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { plural } from "../../base/format.ts";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { formatWhen } from "../../time/time-range.ts";
import { keyOf, listVersions, readVersion, restoreVersion } from "./dashboard-api.ts";
import { differences, type Dashboard } from "./document.ts";

type VersionsDialogProps = {
  dashboard: Dashboard;
  /** There are changes that are not saved, which a restored version would take away. */
  hasDraft: boolean;
  onRestored: (version: number) => void;
  onClose: () => void;
};

/** The last versions, what each was, and the way back to it. */
export function VersionsDialog({ dashboard, hasDraft, onRestored, onClose }: VersionsDialogProps): JSX.Element {
  const { id, version: current } = dashboard;
  const [opened, setOpened] = useState<number | undefined>();
  const found = useQuery({ key: [...keyOf(id), "versions"], read: (signal) => listVersions(id, signal), staleMs: 0 });
  const restore = useMutation((version: number) => restoreVersion(id, version, current));
  return (
    <Dialog title="Versions" width="wide" onClose={onClose}>
      {found.error !== null && (
        <ErrorBox title="The versions could not be read." error={found.error} onRetry={() => void found.refetch()} />
      )}
      {found.data === undefined && found.error === null && <Spinner label="Reading the versions…" />}
      {restore.error !== null && <ErrorBox title="It was not restored." error={restore.error} />}
      <ul class="version-list">
        {found.data?.map(({ version, saved_at: at, saved_by: by }) => (
          <li key={version}>
            <div class="version-line">
              <span>
                <strong>Version {version}</strong> · {formatWhen(at)} · {by}
              </span>
              {version === current ? (
                <span class="version-now">shown now</span>
              ) : (
                <>
                  <Button
                    look="quiet"
                    isPressed={opened === version}
                    label={`Compare version ${version}`}
                    onClick={() => setOpened(opened === version ? undefined : version)}
                  >
                    Compare
                  </Button>
                  <Button
                    needs="write"
                    label={`Restore version ${version}`}
                    isDisabled={hasDraft}
                    reason="Save or discard your changes first."
                    isBusy={restore.isPending && restore.variables === version}
                    onClick={() => {
                      void restore.run(version).then((restored) => {
                        if (restored !== undefined) onRestored(version);
                      });
                    }}
                  >
                    Restore
                  </Button>
                </>
              )}
            </div>
            {opened === version && <VersionDifferences dashboard={dashboard} version={version} />}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function VersionDifferences({ dashboard, version }: { dashboard: Dashboard; version: number }): JSX.Element {
  const found = useQuery({
    key: [...keyOf(dashboard.id), "versions", version],
    read: (signal) => readVersion(dashboard.id, version, signal),
  });
  if (found.error !== null) return <ErrorBox error={found.error} />;
  if (found.data === undefined) return <Spinner label="Reading the version…" />;
  const since = differences(found.data, dashboard);
  return (
    <div class="version-differences">
      <p>
        It had {plural(found.data.panels.length, "panel")}.{" "}
        {since.length > 0 ? "Since then:" : "Nothing is different now."}
      </p>
      <DifferenceList all={since} />
    </div>
  );
}

export function DifferenceList({ all }: { all: readonly string[] }): JSX.Element {
  return (
    <ul class="difference-list">
      {[...new Set(all)].map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}
