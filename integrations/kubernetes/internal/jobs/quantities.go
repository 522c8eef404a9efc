package jobs

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// longestQuantity and longestExponent are the most characters of a quantity and of its exponent: twice those of any amount that Kubernetes can
// hold. Beyond 18 digits ParseQuantity computes with all digits of a number. Its time grows with the square of the exponent, so "1e-20000000"
// takes seconds.
const longestQuantity, longestExponent = 64, 4

// parseQuantity takes unbounded time for long numbers. Tests check its arguments.
var parseQuantity = resource.ParseQuantity

// quantity reads an amount of an object that was not validated. The error says why it is ignored.
func quantity(value any) (resource.Quantity, error) {
	switch value.(type) {
	case string, int64, float64, int, int32:
	default:
		return resource.Quantity{}, fmt.Errorf("is no number")
	}
	text := fmt.Sprint(value)
	if len(text) > longestQuantity {
		return resource.Quantity{}, fmt.Errorf("has %d characters, more than %d", len(text), longestQuantity)
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 && len(text)-at-1 > longestExponent {
		return resource.Quantity{}, fmt.Errorf("has an exponent of more than %d characters", longestExponent)
	}
	return parseQuantity(text)
}

// devicesIn returns the number of accelerators in the resources of a container. Unreadable amounts are ignored.
func devicesIn(resources map[string]any) int32 {
	return devices(corev1.ResourceRequirements{Limits: deviceList(resources["limits"]), Requests: deviceList(resources["requests"])})
}

func deviceList(resources any) corev1.ResourceList {
	found := corev1.ResourceList{}
	listed, _ := resources.(map[string]any)
	for name, value := range listed {
		if !IsDevice(name) {
			continue
		}
		if amount, err := quantity(value); err == nil {
			found[corev1.ResourceName(name)] = amount
		}
	}
	return found
}
