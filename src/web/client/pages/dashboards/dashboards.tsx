import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { toast } from "../../base/announce.ts";
import { formatCount, plural } from "../../base/format.ts";
import { text } from "../../base/params.ts";
import { usePageAddress } from "../../base/schema.ts";
import { useParams } from "../../base/use-params.ts";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { DataTable, type DataColumn } from "../../components/data-table.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { formatWhen } from "../../time/time-range.ts";
import {
  createDashboard,
  deleteDashboard,
  LIST_KEY,
  listDashboards,
  readDashboard,
  type DashboardHead,
} from "./dashboard-api.ts";
import { exportedText } from "./document.ts";
import { ImportButton } from "./import-button.tsx";
import { fileNameOf, saveFile } from "./save-file.ts";
import { dropChanges } from "./use-draft.ts";
import "./dashboards.css";

const PARAMS = { search: text() };

/** All dashboards that the caller may see: the newest first. */
export function DashboardsPage(): JSX.Element {
  const { route } = useLocation();
  const addressOf = usePageAddress();
  const [{ search }, update] = useParams(PARAMS);
  const [opened, setOpened] = useState<"new" | DashboardHead | undefined>();
  const found = useQuery({ key: LIST_KEY, read: listDashboards });
  const open = (id: string, isNew = false): void => {
    const address = addressOf(`dashboards/${id}`);
    route(isNew ? `${address}${address.includes("?") ? "&" : "?"}edit=1` : address);
  };
  const download = useMutation(async (id: string) => {
    const dashboard = await readDashboard(id);
    saveFile(fileNameOf(dashboard.name), exportedText(dashboard));
  });
  const wanted = search.trim().toLowerCase();
  const shown = found.data?.all.filter(({ name, description }) =>
    `${name}\n${description ?? ""}`.toLowerCase().includes(wanted),
  );
  const create = (
    <Button look="primary" icon="plus" needs="write" onClick={() => setOpened("new")}>
      New dashboard
    </Button>
  );
  return (
    <>
      <PageHead title="Dashboards" lead="Panels of queries, for everybody who may use their databases.">
        {create}
        <ImportButton onImported={(made) => open(made.id)} />
      </PageHead>
      {found.error !== null && (
        <ErrorBox title="The list could not be read." error={found.error} onRetry={() => void found.refetch()} />
      )}
      {download.error !== null && <ErrorBox title="The dashboard was not exported." error={download.error} />}
      {found.data === undefined && found.error === null && <Spinner label="Reading the list…" />}
      {found.data !== undefined && found.data.all.length > 0 && (
        <div class="list-search">
          <Field
            label="Find a dashboard"
            isLabelHidden
            type="search"
            placeholder="Find a dashboard"
            value={search}
            onInput={(next) => update({ search: next }, "replace")}
          />
          {found.data.isCut && <p class="lead">The newest {formatCount(found.data.all.length)} are listed.</p>}
        </div>
      )}
      {found.data?.all.length === 0 && (
        <EmptyState icon="dashboards" title="No dashboards yet">
          <p>Make one here, import a file, or use the command line:</p>
          <code>engine dashboards import orders.json</code>
        </EmptyState>
      )}
      {shown?.length === 0 && wanted !== "" && <p class="lead">No dashboard has that in its name or description.</p>}
      {shown !== undefined && shown.length > 0 && (
        <div class="card">
          <DataTable
            label="Dashboards"
            columns={columnsOf({
              addressOf: (id) => addressOf(`dashboards/${id}`),
              onExport: (id) => void download.run(id),
              onDelete: setOpened,
            })}
            rows={shown}
            keyOf={({ id }) => id}
          />
        </div>
      )}
      {opened === "new" && <NewDialog onClose={() => setOpened(undefined)} onCreated={(id) => open(id, true)} />}
      {typeof opened === "object" && <DeleteDialog head={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}

type Actions = {
  addressOf: (id: string) => string;
  onExport: (id: string) => void;
  onDelete: (head: DashboardHead) => void;
};

function columnsOf({ addressOf, onExport, onDelete }: Actions): readonly DataColumn<DashboardHead>[] {
  return [
    {
      title: "Name",
      cell: ({ id, name, description }) => (
        <div class="list-name">
          <a href={addressOf(id)}>{name}</a>
          {description !== null && description !== "" && <small>{description}</small>}
        </div>
      ),
    },
    { title: "Panels", isNumber: true, isMinor: true, cell: ({ panel_count }) => formatCount(panel_count) },
    { title: "Databases", isMinor: true, cell: ({ databases }) => <span class="mono">{databases.join(", ")}</span> },
    { title: "Changed", isMinor: true, cell: ({ updated_at }) => formatWhen(updated_at) },
    { title: "By", isMinor: true, cell: ({ updated_by }) => updated_by },
    {
      title: "Actions",
      cell: (head) => (
        <span class="list-actions">
          <Button look="quiet" icon="external" label={`Export ${head.name}`} onClick={() => onExport(head.id)} />
          <Button
            look="quiet"
            icon="trash"
            needs="write"
            label={`Delete ${head.name}`}
            onClick={() => onDelete(head)}
          />
        </span>
      ),
    },
  ];
}

function NewDialog(props: { onClose: () => void; onCreated: (id: string) => void }): JSX.Element {
  const { onClose, onCreated } = props;
  const [name, setName] = useState("");
  const isSending = useRef(false);
  const create = useMutation((called: string) => createDashboard({ name: called }));
  const submit = async (): Promise<void> => {
    if (name.trim() === "" || isSending.current) return;
    isSending.current = true;
    const made = await create.run(name.trim());
    isSending.current = false;
    if (made !== undefined) onCreated(made.id);
  };
  return (
    <Dialog
      title="New dashboard"
      onClose={onClose}
      actions={
        <Button
          look="primary"
          isBusy={create.isPending}
          isDisabled={name.trim() === ""}
          reason="It needs a name."
          onClick={() => void submit()}
        >
          Create
        </Button>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Field label="Name" value={name} onInput={(next) => setName(next.slice(0, 200))} isRequired />
      </form>
      {create.error !== null && <ErrorBox title="The dashboard was not created." error={create.error} />}
    </Dialog>
  );
}

/** As it is in the list: one that has been changed since is not deleted. */
function DeleteDialog({ head, onClose }: { head: DashboardHead; onClose: () => void }): JSX.Element {
  const remove = useMutation(() => deleteDashboard(head.id, head.version).then(() => true));
  return (
    <Dialog
      title={`Delete ${head.name}?`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            look="danger"
            icon="trash"
            isBusy={remove.isPending}
            onClick={() => {
              void remove.run(undefined).then((isDone) => {
                if (isDone !== true) return;
                dropChanges(head.id);
                toast(`${head.name} is deleted`, "good");
                onClose();
              });
            }}
          >
            Delete
          </Button>
        </>
      }
    >
      <p>
        Its {plural(head.panel_count, "panel")} and all its versions go, for everybody. To keep them, export it first.
      </p>
      {remove.error !== null && <ErrorBox title="The dashboard was not deleted." error={remove.error} />}
    </Dialog>
  );
}
