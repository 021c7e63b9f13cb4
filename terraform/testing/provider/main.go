// A stand-in for the AWS provider: it has the schema of the real one and pretends to make what it is asked for. With it
// `validate`, `test`, `plan`, `apply` and `destroy` run without an account and without a network. It finds arguments that
// are misspelt, missing or of another type, and knows nothing of what AWS itself would refuse.
//
// Resources of the type that PRETEND_FAILURE_OF names fail to apply: so tests see what happens half-way.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed schema.json
var schemaJSON []byte

type attribute struct {
	Type                                    json.RawMessage
	Required, Optional, Computed, WriteOnly bool
}

type nestedBlock struct {
	Nesting  string
	Min, Max int64
	Block    block
}

type block struct {
	Attrs  map[string]attribute
	Blocks map[string]nestedBlock
}

var primitives = map[string]tftypes.Type{"string": tftypes.String, "number": tftypes.Number, "bool": tftypes.Bool}

var nestings = map[string]tfprotov6.SchemaNestedBlockNestingMode{
	"list":   tfprotov6.SchemaNestedBlockNestingModeList,
	"set":    tfprotov6.SchemaNestedBlockNestingModeSet,
	"single": tfprotov6.SchemaNestedBlockNestingModeSingle,
}

// check ends the program: what it is called for can only fail when schema.json is damaged.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func typeOf(raw json.RawMessage) tftypes.Type {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return primitives[name]
	}
	var pair []json.RawMessage
	check(json.Unmarshal(raw, &pair))
	check(json.Unmarshal(pair[0], &name))
	if name == "object" {
		var fields map[string]json.RawMessage
		check(json.Unmarshal(pair[1], &fields))
		types := map[string]tftypes.Type{}
		for field, its := range fields {
			types[field] = typeOf(its)
		}
		return tftypes.Object{AttributeTypes: types}
	}
	element := typeOf(pair[1])
	switch name {
	case "list":
		return tftypes.List{ElementType: element}
	case "set":
		return tftypes.Set{ElementType: element}
	}
	return tftypes.Map{ElementType: element}
}

func (b block) schema() *tfprotov6.SchemaBlock {
	out := &tfprotov6.SchemaBlock{}
	for name, a := range b.Attrs {
		out.Attributes = append(out.Attributes, &tfprotov6.SchemaAttribute{
			Name: name, Type: typeOf(a.Type), Required: a.Required, Optional: a.Optional, Computed: a.Computed, WriteOnly: a.WriteOnly,
		})
	}
	for name, n := range b.Blocks {
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Nesting: nestings[n.Nesting], MinItems: n.Min, MaxItems: n.Max, Block: n.Block.schema(),
		})
	}
	return out
}

func load() *tfprotov6.GetProviderSchemaResponse {
	var all struct {
		Provider  block
		Resources map[string]block
		Data      map[string]block
	}
	check(json.Unmarshal(schemaJSON, &all))
	out := &tfprotov6.GetProviderSchemaResponse{
		Provider:           &tfprotov6.Schema{Block: all.Provider.schema()},
		ResourceSchemas:    map[string]*tfprotov6.Schema{},
		DataSourceSchemas:  map[string]*tfprotov6.Schema{},
		ServerCapabilities: &tfprotov6.ServerCapabilities{PlanDestroy: false},
	}
	for name, b := range all.Resources {
		out.ResourceSchemas[name] = &tfprotov6.Schema{Block: b.schema()}
	}
	for name, b := range all.Data {
		out.DataSourceSchemas[name] = &tfprotov6.Schema{Block: b.schema()}
	}
	return out
}

type server struct {
	tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
}

func (s server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return nil, fmt.Errorf("not offered")
}

func (s server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schemas, nil
}

func (s server) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (s server) ValidateProviderConfig(_ context.Context, r *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (s server) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (s server) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (s server) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (s server) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (s server) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	t := s.schemas.ResourceSchemas[r.TypeName].ValueType()
	v, err := r.RawState.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

// pretend makes a value that a provider would compute.
func pretend(t tftypes.Type, name string) tftypes.Value {
	switch {
	case t.Is(tftypes.String):
		return tftypes.NewValue(t, name)
	case t.Is(tftypes.Number):
		return tftypes.NewValue(t, 1)
	case t.Is(tftypes.Bool):
		return tftypes.NewValue(t, false)
	}
	switch its := t.(type) {
	case tftypes.Object:
		fields := map[string]tftypes.Value{}
		for field, of := range its.AttributeTypes {
			fields[field] = pretend(of, name+"-"+field)
		}
		return tftypes.NewValue(t, fields)
	case tftypes.List:
		return tftypes.NewValue(t, several(its.ElementType, name))
	case tftypes.Set:
		return tftypes.NewValue(t, several(its.ElementType, name))
	}
	return tftypes.NewValue(t, map[string]tftypes.Value{})
}

// several are three texts (a region has zones), and one of everything else.
func several(t tftypes.Type, name string) []tftypes.Value {
	if t.Is(tftypes.String) {
		return []tftypes.Value{pretend(t, name+"-a"), pretend(t, name+"-b"), pretend(t, name+"-c")}
	}
	return []tftypes.Value{pretend(t, name)}
}

func pretendName(typeName, attribute string) string {
	if strings.HasSuffix(attribute, "arn") {
		return "arn:aws:" + typeName + ":eu-central-1:123456789012:pretend/" + attribute
	}
	return "pretend-" + typeName + "-" + attribute
}

func (s server) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	schema := s.schemas.ResourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.ProposedNewState.Unmarshal(t)
	if err != nil || v.IsNull() {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState}, err
	}
	prior, err := r.PriorState.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	if err := v.As(&m); err != nil {
		return nil, err
	}
	for _, a := range schema.Block.Attributes {
		if a.WriteOnly {
			m[a.Name] = tftypes.NewValue(a.Type, nil)
		} else if prior.IsNull() && a.Computed && m[a.Name].IsNull() {
			m[a.Name] = tftypes.NewValue(a.Type, tftypes.UnknownValue)
		}
	}
	planned, err := tfprotov6.NewDynamicValue(t, tftypes.NewValue(t, m))
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: &planned}, err
}

func (s server) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	schema := s.schemas.ResourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.PlannedState.Unmarshal(t)
	if err != nil || v.IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState}, err
	}
	if os.Getenv("PRETEND_FAILURE_OF") == r.TypeName {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PriorState, Diagnostics: []*tfprotov6.Diagnostic{{
			Severity: tfprotov6.DiagnosticSeverityError, Summary: "creating " + r.TypeName + ": pretended failure",
		}}}, nil
	}
	var m map[string]tftypes.Value
	if err := v.As(&m); err != nil {
		return nil, err
	}
	for _, a := range schema.Block.Attributes {
		// A provider that keeps one in the state breaks the promise of write-only arguments.
		if a.WriteOnly {
			m[a.Name] = tftypes.NewValue(a.Type, nil)
		} else if !m[a.Name].IsFullyKnown() {
			m[a.Name] = pretend(a.Type, pretendName(r.TypeName, a.Name))
		}
	}
	filled, err := tftypes.Transform(tftypes.NewValue(t, m), func(_ *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		if value.IsKnown() {
			return value, nil
		}
		return pretend(value.Type(), "pretended"), nil
	})
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(t, filled)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: &state}, err
}

func (s server) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState}, nil
}

func (s server) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	schema := s.schemas.DataSourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.Config.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	if err := v.As(&m); err != nil {
		return nil, err
	}
	for _, a := range schema.Block.Attributes {
		if a.Computed && m[a.Name].IsNull() {
			m[a.Name] = pretend(a.Type, pretendName(r.TypeName, a.Name))
		}
	}
	state, err := tfprotov6.NewDynamicValue(t, tftypes.NewValue(t, m))
	return &tfprotov6.ReadDataSourceResponse{State: &state}, err
}

func main() {
	s := server{schemas: load()}
	check(tf6server.Serve("registry.terraform.io/hashicorp/aws", func() tfprotov6.ProviderServer { return s }))
}
