// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"fmt"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// responsive returns what is to be said of whether an XR is slowed. Of one that never
// was, that is nothing, so that it costs nothing. Of one that was it is said until the
// XR goes: when it ended is what people look for afterwards. A restart of the operator
// closes all circuits, and leaves what is said of closed ones as it is.
func responsive(kept []commonv1.Condition, circuit engine.Circuit) []commonv1.Condition {
	switch {
	case circuit.Open:
		return []commonv1.Condition{commonv1.False(commonv1.TypeResponsive, commonv1.ReasonWatchCircuitOpen, loopMessage(circuit))}
	case find(kept, commonv1.TypeResponsive) != nil:
		return []commonv1.Condition{commonv1.True(commonv1.TypeResponsive, commonv1.ReasonWatchCircuitClosed)}
	}
	return nil
}

// loopMessage names the object that an XR is in a loop with. Who else writes to it is
// in its managed fields, of which the operator keeps only its own.
func loopMessage(circuit engine.Circuit) string {
	o := circuit.Object
	name := o.Kind.Kind + " " + o.Name.Name
	if o.Name.Namespace != "" {
		name = o.Kind.Kind + " " + o.Name.String()
	}
	if circuit.Rewritten {
		return fmt.Sprintf("Something changes %s whenever this XR has written it, so this XR answers changes late until that ends. "+
			"Find in the object's metadata.managedFields who writes it, and leave each field to one of them.", name)
	}
	return fmt.Sprintf("Changes of %s make this XR write something too often, so this XR answers changes up to a second late until they get fewer. "+
		"If something changes that object in answer to what this XR writes, end that; else have the function depend on less of the object.", name)
}
