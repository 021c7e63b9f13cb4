import type { JSX } from "preact";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { formatWhen } from "../../time/time-range.ts";
import { keyOf, readDashboard, saveDashboard } from "./dashboard-api.ts";
import { differences, type Content, type Dashboard } from "./document.ts";
import { DifferenceList } from "./versions-dialog.tsx";

type ConflictDialogProps = {
  /** What the changes were made on. */
  base: Dashboard;
  own: Content;
  onReload: (theirs: Dashboard) => void;
  onSaved: (saved: Dashboard) => void;
  onClose: () => void;
};

/** Somebody else has saved since: what they did, and what is to be kept. */
export function ConflictDialog({ base, own, onReload, onSaved, onClose }: ConflictDialogProps): JSX.Element {
  const { id } = base;
  const theirs = useQuery({ key: [...keyOf(id), "theirs"], read: (signal) => readDashboard(id, signal), staleMs: 0 });
  // On what is shown here: a third save in between is another conflict.
  const overwrite = useMutation((version: number) => saveDashboard(id, own, version));
  const { data } = theirs;
  return (
    <Dialog
      title="Somebody else has saved this dashboard"
      width="wide"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Go on editing</Button>
          <Button isDisabled={data === undefined} onClick={() => data !== undefined && onReload(data)}>
            Take theirs, drop my changes
          </Button>
          <Button
            look="danger"
            isDisabled={data === undefined}
            isBusy={overwrite.isPending}
            onClick={() => {
              if (data === undefined) return;
              void overwrite.run(data.version).then((saved) => {
                if (saved !== undefined) onSaved(saved);
                else void theirs.refetch();
              });
            }}
          >
            Overwrite with mine
          </Button>
        </>
      }
    >
      {theirs.error !== null && (
        <ErrorBox title="Their version could not be read." error={theirs.error} onRetry={() => void theirs.refetch()} />
      )}
      {data === undefined && theirs.error === null && <Spinner label="Reading what they saved…" />}
      {data !== undefined && (
        <>
          <p>
            {data.updated_by} saved version {data.version} at {formatWhen(data.updated_at)}. Your changes began with
            version {base.version}. If you overwrite it, theirs stays among the versions.
          </p>
          <h3>What they changed</h3>
          <DifferenceList all={differences(base, data)} />
          <h3>What you changed</h3>
          <DifferenceList all={differences(base, own)} />
        </>
      )}
      {overwrite.error !== null && <ErrorBox title="It was not saved." error={overwrite.error} />}
    </Dialog>
  );
}
